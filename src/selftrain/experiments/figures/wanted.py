"""Which cells stand in one figure: of one backbone, and of one recipe for each method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from selftrain.errors import DataError
from selftrain.experiments.names import UPET, ordered
from selftrain.experiments.references import MAJORITY
from selftrain.experiments.results import Result
from selftrain.experiments.tables.choice import Choice, choose, listed, with_shots


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to draw of a file of cells; everything where nothing is named."""

    choice: Choice = Choice()
    methods: tuple[str, ...] = ()
    """In this order; empty: UPET's students in the paper's order, otherwise every method."""
    tasks: tuple[str, ...] = ()

    def cells(
        self, results: Iterable[Result], what: str, has: Callable[[Result], object]
    ) -> list[Result]:
        """The cells that have what is drawn: of one backbone, and of one recipe for each method."""
        cells = [cell for cell in results if has(cell)]
        methods, tasks = {cell.method for cell in cells}, {cell.task for cell in cells}
        _check_known("method", self.methods, methods, what)
        _check_known("task", self.tasks, tasks, what)
        methods = set(self.methods) or methods & UPET.keys() or methods
        named = [c for c in cells if c.method in methods and c.task in (self.tasks or tasks)]
        if not named:
            raise DataError(f"no cell has {what}", "selftrain bench writes them")
        chosen = choose(with_shots(named, self.choice), self.choice)
        backbones = {cell.backbone for cell in chosen if cell.method != MAJORITY}
        if len(backbones) > 1:
            raise DataError(
                f"cells of the backbones {listed(backbones)} do not stand in one figure",
                f"choose one: --backbone {min(backbones)}",
            )
        # The majority class may have been computed beside each of several backbones: one is enough.
        return list({(cell.method, cell.task, cell.seed): cell for cell in chosen}.values())

    def order(self, cells: Sequence[Result]) -> list[str]:
        """The methods of these cells as named, otherwise in the paper's order."""
        present = {cell.method for cell in cells}
        named = [name for name in dict.fromkeys(self.methods) if name in present]
        return named or ordered(present)


def _check_known(kind: str, names: Iterable[str], known: set[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise DataError(
                f"no cell of the {kind} `{name}` has {what}",
                f"there are {listed(known)}" if known else "selftrain bench writes them",
            )


def setting(cells: Sequence[Result]) -> str:
    """What the cells have in common, for a figure's head line."""
    first = next((cell for cell in cells if cell.method != MAJORITY), cells[0])
    where = f"{first.backbone}, preset {first.preset}"
    return f"{where}, {first.shots} labels a class, {first.scored_on} rows"
