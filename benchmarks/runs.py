"""The run folders of some methods on one task, a line for each, of one seed that all have.

python benchmarks/runs.py runs/paper/cells.jsonl --task agnews --backbone minilm-mlm METHOD METHOD
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from selftrain.experiments import results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=Path)
    parser.add_argument("methods", nargs="+")
    parser.add_argument("--task", required=True)
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--shots", type=int, default=16)
    options = parser.parse_args()
    found: dict[str, dict[int, Path]] = {method: {} for method in options.methods}
    asked = (options.task, options.backbone, options.preset, options.shots)
    for cell in results.read(options.cells):
        its_own = (cell.task, cell.backbone, cell.preset, cell.shots)
        if cell.method in found and cell.run and its_own == asked:
            found[cell.method][cell.seed] = options.cells.parent / cell.run
    shared = set.intersection(*(set(by_seed) for by_seed in found.values()))
    if not shared:
        sys.exit(f"error: no seed has a run of each on {options.task}: {', '.join(found)}")
    for by_seed in found.values():
        print(by_seed[min(shared)])


if __name__ == "__main__":
    main()
