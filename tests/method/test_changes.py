"""One TOML file for everything, and flags that go before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from selftrain.cli import config
from selftrain.cli.config import Config
from selftrain.errors import ConfigError
from selftrain.method.changes import backbone_for, merged, method_of
from selftrain.method.losses import PHCE, CrossEntropy
from selftrain.method.recipes import recipe
from selftrain.model.pel import Adapter, LoRA


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


# ── the file ─────────────────────────────────────────────────────────────────────────────────


def test_no_file_is_the_defaults() -> None:
    assert config.read(None) == Config()
    assert method_of({}) == recipe("supcon", "laptop")


def test_the_example_in_the_docstring_is_a_config(tmp_path: Path) -> None:
    example = (config.__doc__ or "").partition("\n\n")[2]
    settings = config.read(written(tmp_path, example))
    assert (settings.backbone, settings.seed, settings.shots) == ("minilm", 12, 16)
    assert settings.columns == {"text": "review"}
    assert settings.task["words"] == {"positive": "great", "negative": "terrible"}
    method = method_of(settings.method, settings.preset)
    assert (method.name, method.rounds, method.select.how) == ("upet-prompt-adapter", 2, "topk")


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("sed = 1", "unknown entry `sed`", "did you mean `seed`"),
        ("zzz = 1", "unknown entry `zzz`", "known: backbone, "),
        ("seed = true", "`seed` is True; expected a whole number", "seed = 12"),
        ("backbone = 3", "`backbone` is 3; expected text in quotes", 'backbone = "…"'),
        ("method = 3", "`method` is 3; expected a table", "[method]"),
        ("columns = { lable = 'x' }", "columns: unknown entry `lable`", "`label`"),
        ("columns = { text = 3 }", "`columns.text` is 3", 'text = "COLUMN"'),
        ("seed: 3", "is not TOML", "quotes"),
        ("shots = " + "[" * 10_000, "is not TOML: maximum recursion", "quotes"),
        ("shots = " + "[" * 33 + "]" * 33, "is not TOML: more than 32 tables or lists", "quotes"),
        (f"method{'.a' * 33} = 1", "is not TOML: more than 32 tables or lists", "quotes"),
        ("seed = 1" + "0" * 5_000, "is not TOML: Exceeds the limit", "quotes"),
        ("seed = 0x" + "f" * 5_000, "is not TOML: a whole number of more than 64", "quotes"),
        ("method.pools = [1, 9223372036854775808]", "more than 64 bits", "quotes"),
        ("# " + "x" * 2**20, "is not TOML: it has more than 1,048,576 bytes", "quotes"),
    ],
)
def test_an_entry_nobody_reads_or_of_another_kind_is_an_error(
    tmp_path: Path, text: str, problem: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config.read(written(tmp_path, text))
    assert len(caught.value.message) < 500
    assert problem in caught.value.message
    assert hint in caught.value.hint


# ── flags over the file ──────────────────────────────────────────────────────────────────────


def test_flags_go_before_the_file_and_the_file_before_the_defaults(tmp_path: Path) -> None:
    path = written(tmp_path, "seed = 5\nshots = 4\n[columns]\ntext = 'a'\nlabel = 'b'\n")
    settings = config.read(path).over({"seed": 7, "shots": None, "columns": {"text": "c"}})
    assert (settings.seed, settings.shots, settings.preset) == (7, 4, "laptop")
    assert settings.columns == {"text": "c", "label": "b"}


def test_flags_that_were_not_given_change_nothing() -> None:
    settings = Config(seed=5, method={"rounds": 2})
    flags = {"seed": None, "method": {"name": None, "rounds": None}, "task": {"words": {}}}
    assert settings.over(flags) == Config(seed=5, method={"rounds": 2}, task={"words": {}})


def test_a_seed_of_zero_is_a_seed() -> None:
    assert Config(seed=5).over({"seed": 0}).seed == 0


# ── changes to a recipe ──────────────────────────────────────────────────────────────────────


def test_a_table_over_the_students_changes_each_of_them() -> None:
    base = {"student": [{"rate": 1, "batch": 8}, {"rate": 2, "batch": 8}]}
    assert merged(base, {"student": {"batch": 4}}) == {
        "student": [{"rate": 1, "batch": 4}, {"rate": 2, "batch": 4}]
    }


def test_the_same_kind_keeps_its_entries_and_another_starts_from_its_own_defaults() -> None:
    paper = method_of(
        {"name": "upet-head-adapter", "student": {"tuning": {"layers": 2}}}, "paper"
    ).student[0]
    assert paper.tuning == Adapter(width=128, layers=2)
    lora = method_of(
        {"name": "upet-head-adapter", "student": {"tuning": {"kind": "lora"}}}, "paper"
    ).student[0]
    assert lora.tuning == LoRA()
    plain = method_of(
        {"name": "upet-head-adapter", "student": {"loss": {"kind": "cross-entropy"}}}
    ).student[0]
    assert plain.loss == CrossEntropy()
    assert method_of({"name": "upet-head-adapter", "student": {"loss": {"tau": 4}}}).student[
        0
    ].loss == PHCE(tau=4)


@pytest.mark.parametrize(
    ("changes", "steps", "epochs"),
    [({"epochs": 3}, None, 3), ({"steps": 7}, 7, None)],
)
def test_of_steps_and_epochs_the_one_that_is_given_counts(
    changes: dict[str, int], steps: int | None, epochs: int | None
) -> None:
    for preset in ("laptop", "paper"):
        teacher = method_of({"teacher": changes}, preset).teacher
        assert (teacher.steps, teacher.epochs) == (steps, epochs)


def test_of_count_and_shares_the_one_that_is_given_counts() -> None:
    for preset in ("laptop", "paper"):
        by_count = method_of({"select": {"count": 9}}, preset).select
        by_share = method_of({"select": {"shares": [0.5]}}, preset).select
        assert (by_count.count, by_count.shares) == (9, None)
        assert (by_share.count, by_share.shares) == (None, (0.5,))


def test_prompts_get_the_embedded_backbone_with_an_mlm_head() -> None:
    assert backbone_for(recipe("upet-head-adapter")) == "minilm"
    assert backbone_for(recipe("upet-prompt-adapter")) == "minilm-mlm"
