"""``selftrain-lite``: stdout carries answers, stderr messages.

Exit codes: 0 done, 1 an error with a hint, 2 a command that cannot be read, 130 stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from selftrain_lite.errors import LiteError
from selftrain_lite.serve.command import add_serve
from selftrain_lite.version import __version__

if TYPE_CHECKING:
    from selftrain_lite.files import Reader
    from selftrain_lite.model import Model

CHUNK = 256  # rows answered before they are written
EXAMPLE = "selftrain-lite predict model new.csv -o answers.csv"


class Parser(argparse.ArgumentParser):
    """A parser whose errors have the shape of ours."""

    def error(self, message: str) -> NoReturn:
        """Print the problem and a hint, and exit with 2."""
        fail(message, f"{self.prog} --help", 2)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; our own errors become one line and a hint."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    parser = command_line()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        sys.exit(0)
    try:
        options.run(options)
        sys.stdout.flush()
    except LiteError as error:
        fail(error.message, error.hint, 1)
    except BrokenPipeError:  # the reader of our answers has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)
    sys.exit(0)


def command_line() -> Parser:
    """The commands and their options."""
    parser = Parser("selftrain-lite", description="Answers of a model that selftrain exported.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", parser_class=Parser, metavar="COMMAND")
    add_predict(commands)
    add_serve(commands)
    info = commands.add_parser("info", help="Print what is known of a model, as JSON.")
    info.add_argument("model", type=Path, help="A folder that `selftrain export` wrote.")
    info.set_defaults(run=show_info)
    return parser


def add_predict(commands: argparse._SubParsersAction[Parser]) -> None:
    """The command that labels texts."""
    predict = commands.add_parser(
        "predict",
        help="Label new texts: label and probability of each class.",
        epilog=f"example: {EXAMPLE}",
    )
    predict.add_argument("model", type=Path, help="A folder that `selftrain export` wrote.")
    predict.add_argument("texts", help="CSV, TSV or JSON lines, by its name; - is stdin.")
    predict.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="CSV, TSV or JSON lines, by its name."
    )
    predict.add_argument("--text", metavar="COLUMN", help="Column of the text.")
    predict.add_argument("--pair", metavar="COLUMN", help="Column of the second text.")
    predict.add_argument("--id", metavar="COLUMN", help="Column that names each row.")
    predict.add_argument(
        "--format", choices=("csv", "tsv", "jsonl"), help="Of a file whose name does not say it."
    )
    predict.add_argument(
        "--abstain", type=float, default=0.0, metavar="P", help="No label below this probability."
    )
    predict.add_argument("--threads", type=int, metavar="N", help="Threads that compute.")
    predict.set_defaults(run=predict_file)


def predict_file(options: argparse.Namespace) -> None:
    """Answer every row of a file, in order."""
    from selftrain_lite.files import Columns, check_target, reading, replacing, write
    from selftrain_lite.model import load

    if not 0 <= options.abstain <= 1:
        raise LiteError(f"--abstain is {options.abstain}; expected 0 to 1", "--abstain 0.8")
    out: Path | None = options.out
    form = "csv" if out is None else check_target(out, Path(options.texts), options.model)
    model = load(options.model, threads=options.threads)
    columns = Columns(options.text, options.pair, options.id)
    target = nullcontext(sys.stdout) if out is None else replacing(out)
    with reading(options.texts, options.format, columns, pair=model.pair) as reader:
        rows = answers(model, reader, options.abstain)
        with target as file:
            count = write(file, names_of(model, reader), rows, form)
    if out is not None:
        say(f"written: {out}, {count} rows")


def names_of(model: Model, reader: Reader) -> list[str]:
    """The columns of an answer; the id comes first and keeps its column name."""
    names = ["label", *(f"p_{label}" for label in model.labels)]
    first = reader.id or "row"
    return ["id" if first in names else first, *names]


def answers(model: Model, reader: Reader, abstain: float) -> Iterator[list[object]]:
    """One answer a row, in the order of the rows."""
    from selftrain_lite.files import chunks

    for chunk in chunks(reader.rows, CHUNK):
        probabilities = model.predict_proba([text for _, text in chunk])
        for (name, _), row in zip(chunk, probabilities.tolist(), strict=True):
            best = max(range(len(row)), key=row.__getitem__)
            label = model.labels[best] if row[best] >= abstain else ""
            first = name if reader.id is not None else int(name)
            yield [first, label, *(round(p, 6) for p in row)]


def show_info(options: argparse.Namespace) -> None:
    """Print what is known of a model, as JSON."""
    from selftrain_lite.model import load

    print(json.dumps(load(options.model).info, ensure_ascii=False, indent=2))


def say(line: str) -> None:
    """Print a message on stderr."""
    print(line, file=sys.stderr)


def fail(problem: str, hint: str, code: int) -> NoReturn:
    """Print what went wrong and what to try, and exit."""
    say(f"error: {problem}")
    say("")
    say(f"hint: {hint}")
    sys.exit(code)
