"""Options: bundles become options, options become settings."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from selftrain import cli
from selftrain.cli import app
from selftrain.cli.bundles import with_options
from selftrain.cli.config import Config, settings_of
from selftrain.cli.inputs import read_rows
from selftrain.cli.options import (
    ColumnOptions,
    DataOptions,
    MachineOptions,
    PromptOptions,
    TrainingOptions,
    seeds_of,
    words_of,
)
from selftrain.data import places
from selftrain.data.read import Columns
from selftrain.data.rows import Notes
from selftrain.errors import ConfigError


@pytest.mark.parametrize(("text", "seeds"), [("12", [12]), ("12,21", [12, 21]), ("1, 2,1", [1, 2])])
def test_seeds_are_taken_once_each(text: str, seeds: list[int]) -> None:
    assert seeds_of(text) == seeds


def test_shots_are_drawn_by_the_seed_of_the_config_too(folder: Path) -> None:
    """A seed counts wherever it is given."""

    def drawn(**settings: Any) -> set[str]:
        files = DataOptions(
            labelled=places.Place("labelled.csv"), unlabelled=[places.Place("pool.csv")]
        )
        split, _ = read_rows(files, Config(shots=2, **settings), Notes())
        return {row.example.text for row in split.labelled}

    by_seed = {seed: drawn(seed=seed) for seed in range(5)}
    assert len(set(map(frozenset, by_seed.values()))) > 1
    assert drawn() == drawn(seed=12)


def test_label_words_may_belong_to_a_label_with_an_equals_sign() -> None:
    assert words_of(["a=b=great", "c=bad"]) == {"a=b": "great", "c": "bad"}
    with pytest.raises(ConfigError, match="expected LABEL=WORD"):
        words_of(["=great"])


def test_the_label_of_a_word_is_cleaned_as_in_a_file() -> None:
    assert words_of(["Cafe\u0301=coffee", " tea\u200b =tea"]) == {"Caf\xe9": "coffee", "tea": "tea"}
    with pytest.raises(ConfigError, match="--word is '\\\\u200b=x'"):
        words_of(["\u200b=x"])


def test_two_words_for_one_class_are_refused() -> None:
    with pytest.raises(ConfigError, match="gives `Caf\xe9` two words: `bar` and `pub`") as caught:
        words_of(["Cafe\u0301=bar", "Caf\xe9=pub"])
    assert "--task FILE" in caught.value.hint


# ── bundles ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Place:
    town: Annotated[str, typer.Argument(help="Where.")]
    street: Annotated[str, typer.Option(help="Which.")] = "Main"


@dataclass(frozen=True)
class Visit(Place):
    hours: Annotated[int, typer.Option()] = 1


def test_a_bundle_stands_for_its_options_in_their_order_and_arrives_filled() -> None:
    arrived: list[object] = []
    small = typer.Typer(add_completion=False)

    @small.command()
    @with_options
    def go(*, late: bool = False, visit: Visit, quiet: bool = False) -> None:
        """Go somewhere."""
        arrived.append((late, visit, quiet))

    command = typer.main.get_command(small)
    names = [option.name for option in command.params]
    assert names == ["late", "town", "street", "hours", "quiet"]
    assert command.help == "Go somewhere."
    CliRunner().invoke(small, ["Ulm", "--hours", "3", "--quiet"], catch_exceptions=False)
    assert arrived == [(False, Visit("Ulm", "Main", 3), True)]


def test_every_setting_of_a_run_has_an_option_of_fit_by_the_same_name() -> None:
    (fit,) = [each for each in app.registered_commands if each.callback.__name__ == "fit"]
    options = {*inspect.signature(fit.callback).parameters}
    entries = {field.name for field in fields(Config)}
    tables = {"columns"}  # its entries are options
    assert entries - options == tables | {"revision"}
    assert {field.name for field in fields(Columns)} <= options


def test_options_lie_over_the_config_file_and_one_that_is_not_given_changes_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.toml"
    file.write_text('seed = 7\nthreads = 1\n[columns]\ntext = "a"\n[method]\nrounds = 2\n', "utf-8")
    settings = settings_of(
        file,
        ColumnOptions(label="b"),
        TrainingOptions(method="ust", seed=0),
        PromptOptions(word=["good=great"]),
        MachineOptions(cache_mb=0),
    )
    assert settings == Config(
        seed=0,
        threads=1,
        cache_mb=0,
        columns={"text": "a", "label": "b"},
        method={"name": "ust", "rounds": 2},
        task={"words": {"good": "great"}},
    )


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('bakbone = "minilm"', "did you mean `backbone`?"),
        ("cache_md = 3", "did you mean `cache_mb`?"),
        ('columns.lable = "x"', "did you mean `label`?"),
    ],
)
def test_an_unknown_entry_gets_did_you_mean(tmp_path: Path, line: str, hint: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(line + "\n", "utf-8")
    with pytest.raises(ConfigError) as raised:
        settings_of(file)
    assert raised.value.hint == hint


# ── the room ─────────────────────────────────────────────────────────────────────────────────


def test_commands_never_import_commands() -> None:
    room = Path(cli.__file__).parent
    modules = {each.callback.__module__.rpartition(".")[2] for each in app.registered_commands}
    modules.add("figures")
    for name in modules:
        tree = ast.parse((room / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                taken = {alias.name for alias in node.names}
                taken.add((node.module or "").removeprefix("selftrain.cli."))
                if (node.module or "").startswith("selftrain.cli"):
                    assert not taken & modules - {name}, f"{name} imports {taken}"
