"""The manifest: what decides a run is in it, and one from elsewhere is not trusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import small_run
from damage import made_anew, moved_behind_a_link, refusal, rewritten
from selftrain.data.rows import Split
from selftrain.errors import RunError
from selftrain.model.backbone import Backbone
from selftrain.runs import lessons
from selftrain.runs.manifest import Manifest
from selftrain.training.job import Job


@pytest.mark.parametrize(
    ("differs", "other"),
    [
        ("pool", lambda s: replace(s, unlabelled=[*s.unlabelled, small_run.example("good", 99)])),
        (
            "labelled",
            lambda s: replace(s, labelled=(replace(s.labelled[0], label="bad"), *s.labelled[1:])),
        ),
        ("order of labelled", lambda s: replace(s, labelled=s.labelled[::-1])),
        ("dev", lambda s: replace(s, dev=s.labelled[:1])),
        (None, lambda s: replace(s, unlabelled=s.unlabelled[::-1])),
    ],
)
def test_other_rows_are_another_configuration(
    differs: str | None, other: Callable[[Any], Split], manifest: Manifest, backbone: Backbone
) -> None:
    split = other(small_run.split())
    now = Manifest.of(Job(small_run.TASK, split, small_run.METHOD, backbone, 7))
    places = [name for name in manifest.data if manifest.data[name] != now.data[name]]
    assert places == ([differs] if differs else [])


class Uncounted:
    """A pool that can be read again, but has no length."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


@pytest.mark.parametrize("kind", [list, Uncounted])
def test_a_round_too_large_to_be_read_back_is_refused_before_training(
    kind: Callable[[Any], Any], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lessons, "LARGEST_LESSON", 39)
    split = replace(small_run.split(), unlabelled=kind(small_run.split().unlabelled))
    for method in (replace(small_run.METHOD, pool=size) for size in ("all", 40)):
        with pytest.raises(RunError, match=r"would judge 40 rows; .* at most 39") as caught:
            Manifest.of(Job(small_run.TASK, split, method, backbone, 7), small_run.MACHINE)
        assert caught.value.hint
    for fine in ({"pool": 39}, {"pool": "all", "rounds": 0}):
        method = replace(small_run.METHOD, **fine)
        Manifest.of(Job(small_run.TASK, split, method, backbone, 7), small_run.MACHINE)


# ── manifests from elsewhere ──

DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "manifest not JSON": (
        lambda f: (f / "manifest.json").write_text('{"format": 2,'),
        "manifest.json is not JSON",
    ),
    "manifest not an object": (
        lambda f: (f / "manifest.json").write_text("[1]"),
        "not written by selftrain",
    ),
    "manifest of a web page": (
        lambda f: (f / "manifest.json").write_text('{"name": "app", "icons": []}'),
        "not written by selftrain",
    ),
    "older format": (
        lambda f: rewritten(f / "manifest.json", format=1),
        "has format 1; this version reads format 2",
    ),
    "newer format": (
        lambda f: rewritten(f / "manifest.json", format=3),
        "has format 3; this version reads format 2",
    ),
    "manifest without seed": (
        lambda f: (f / "manifest.json").write_text('{"format": 2}'),
        "manifest.json is damaged",
    ),
    "manifest nested without end": (
        lambda f: (f / "manifest.json").write_text("[" * 100_000),
        "manifest.json is not JSON: recursion",
    ),
    "oversized manifest": (
        lambda f: os.truncate(f / "manifest.json", 2**40),  # sparse: it takes no room here
        "has 1,099,511,627,776 bytes; expected at most",
    ),
    "manifest a link": (
        lambda f: moved_behind_a_link(f / "manifest.json"),
        "manifest.json is not a plain file",
    ),
    "manifest a folder": (
        lambda f: made_anew(f / "manifest.json", os.mkdir),
        "manifest.json is not a plain file",
    ),
    "manifest a pipe": (
        lambda f: made_anew(f / "manifest.json", os.mkfifo),
        "manifest.json is not a plain file",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_manifest_is_one_line_and_a_hint(
    damage: str, folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    harm, said = DAMAGES[damage]
    harm(folder)
    assert said in refusal(folder, manifest, backbone).message
