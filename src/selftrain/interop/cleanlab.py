"""cleanlab: the labelled rows, with probabilities of models that did not see them.

A Parquet file goes out: ``uid``, ``label`` (the place of the class), and ``p_…`` for each class in
order, which is what cleanlab calls ``pred_probs``. It has no texts, and nothing comes back.
"""

from __future__ import annotations

from pathlib import Path

from selftrain.disk import replacing
from selftrain.interop.tool import LABEL, UID, Outgoing, Tool


def write(path: Path, out: Outgoing) -> None:
    """Write the labelled rows."""
    import pyarrow
    import pyarrow.parquet

    places = {label: place for place, label in enumerate(out.labels)}
    columns = {
        UID: pyarrow.array([row.example.uid for row in out.rows], pyarrow.string()),
        LABEL: pyarrow.array([places[row.label] for row in out.rows], pyarrow.int64()),
    }
    for place, label in enumerate(out.labels):
        shares = [row.probabilities[place] for row in out.rows]
        columns[f"p_{label}"] = pyarrow.array(shares, pyarrow.float64())
    with replacing(path.resolve()) as temporary, temporary.open("xb") as file:
        pyarrow.parquet.write_table(pyarrow.table(columns), file)


TOOL = Tool(title="cleanlab", endings=(".parquet",), write=write, has_texts=False)
