"""``selftrain export``: the model of a run as a folder that other programs read."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.cli.talk import Watch, say, warn
from selftrain.data.places import Place

if TYPE_CHECKING:
    from selftrain.data.rows import Example


@with_options
def export(
    *,
    run: options.RunFolder,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="The folder to write; -o model."),
    ],
    form: Annotated[
        Literal["onnx", "sentence-transformers"],
        typer.Option("--format", help="What will read it: onnx is for selftrain-lite and others."),
    ] = "onnx",
    weights: Annotated[
        Literal["fp32", "fp16", "int8"],
        typer.Option(help="fp16 is half the size; int8 a quarter, faster, and less exact."),
    ] = "fp32",
    texts: Annotated[
        Place | None,
        typer.Option(
            parser=options.place,
            metavar="FILE",
            help="Texts on which answers are compared, else random ones; none are stored.",
        ),
    ] = None,
    columns: options.TextColumns,
    round_: options.RoundNumber = None,
    backbone: options.RunBackbone = None,
) -> None:
    """Write the model of a run as a folder that needs no torch.

    selftrain export run -o model

    selftrain-lite predict model new.csv

    The folder has calibrated answers, a tokenizer and a model card. It appears after its answers
    were compared with those of the run.
    """
    from selftrain.export.folder import Wanted, check_place, check_wanted, export

    check_wanted(Wanted(form, weights))
    inputs.check_fits(run, ())
    inputs.check_spared([out], run)
    check_place(out)
    examples = None if texts is None else read_examples(texts, columns, run)
    with Watch() as watch:
        with watch.busy("loading"):
            from selftrain.export.origin import read_origin
            from selftrain.runs.read import caveats

            origin = read_origin(run, round_, backbone)
            warn(caveats(run, round_))
        with watch.busy("exporting"):
            parity = export(origin, out, Wanted(form, weights, examples))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    say(str(parity))
    say(f"written: {out}, {size / 1e6:.0f} MB")


def read_examples(path: Place, columns: options.TextColumns, run: Path) -> list[Example]:
    """The texts of a file, as many as answers are compared on; pairs if the run has pairs."""
    from selftrain.data.read import read_texts
    from selftrain.data.rows import Notes
    from selftrain.export.parity import TEXTS

    table = read_texts(path, columns.columns(), notes=Notes())
    examples = list(islice(table.examples, TEXTS))
    inputs.check_fits(run, examples)
    return examples
