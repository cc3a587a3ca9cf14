"""`selftrain review`: what it refuses, what it says, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

import reviewed
from bad_input import Case, check_refused
from command import selftrain, snapshot
from selftrain.review import serve

REVIEW = "review done -u pool.csv --no-browser --backbone {bert}"


def manifest(**changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        path = folder / "done" / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def round_0_alone(folder: Path) -> None:
    shutil.rmtree(folder / "done" / "rounds" / "1")


OTHER_RUN = json.dumps(
    {"uid": "1", "text": "1", "was": "good", "now": "good", "verdict": "accept", "round": 1,
     "run": "0123456789abcdef"}
)  # fmt: skip
CASES = {
    "a run of a newer version": Case(
        REVIEW, "has format 99", spoil=manifest(format=99), hint="pip install --upgrade"
    ),
    "no run": Case(REVIEW.replace("done", "nowhere"), "is not a run folder", hint="selftrain fit"),
    "a pool that is not the run's": Case(
        REVIEW.replace("pool.csv", "test.csv"),
        "has none of the 24 texts of the run",
        hint="give the file of that run",
    ),
    "no texts": Case(
        "review done", "no texts are given: a run folder has none", hint="--unlabelled pool.csv"
    ),
    "corrections of another run": Case(
        REVIEW,
        "corrections.jsonl holds corrections of another run",
        {"corrections.jsonl": OTHER_RUN + "\n"},
        hint="--corrections NEW",
    ),
    "corrections that are none": Case(
        REVIEW, "line 1, is no correction", {"corrections.jsonl": "text,label\n"}, hint="NEW"
    ),
    "corrections over the pool": Case(
        REVIEW + " --corrections pool.csv", "is read by this command", hint="-o NEW"
    ),
    "corrections inside the run": Case(
        REVIEW + " --corrections done/manifest.json", "is read by this command"
    ),
    "a run without lessons": Case(REVIEW, "has no lesson yet", spoil=round_0_alone),
    "corrections that are a note": Case(
        REVIEW, "is no corrections file", {"corrections.jsonl": "a note"}, hint="NEW"
    ),
    "a port that is none": Case(REVIEW + " --port 99999", "--port is 99999", hint="leave --port"),
    "a damaged lesson": Case(
        REVIEW,
        "sha256 differs",
        spoil=lambda folder: (folder / "done/rounds/1/lesson.parquet").write_bytes(b"PAR1"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_line_and_a_hint(case: Case, folder: Path, bert: Path, done: Path) -> None:
    check_refused(case, folder, bert, done)


def test_a_port_in_use_is_named(folder: Path, bert: Path, done: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        case = Case(
            f"{REVIEW} --port {port}",
            f"cannot open port {port}: another program uses it",
            hint="leave --port out",
        )
        check_refused(case, folder, bert, done)


def test_a_missing_extra_names_the_command_that_installs_it(
    folder: Path, bert: Path, done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    case = Case(REVIEW, "starlette is not installed", hint="pip install 'selftrain[review]'")
    check_refused(case, folder, bert, done)


# ── what a review leaves behind ──


@pytest.fixture
def review(life: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Give the command, with verdicts that a person makes on its page while it is served."""

    def give(line: str = REVIEW.replace("done", "run"), *verdicts: dict[str, Any]) -> Any:
        def decide(app: Any, _: object) -> None:
            keys = app.keys
            headers = {
                "host": keys.hosts[0],
                "cookie": f"{keys.cookie}={keys.session}",
                "origin": f"http://{keys.hosts[0]}",
                "content-type": "application/json",
            }
            for verdict in verdicts:
                body = json.dumps(verdict).encode()
                answer = reviewed.request(app, "/api/verdict", headers, method="POST", body=body)
                assert answer.status == 200

        monkeypatch.setattr(serve, "serve", decide)
        return selftrain(line.format(bert=bert))

    return give


def test_verdicts_are_written_and_the_run_does_not_change(
    review: Callable[..., Any], life: Path
) -> None:
    before = snapshot(life / "run")
    line = REVIEW.replace("done", "run") + " --labelled labelled.csv"
    said = review(line, {"verdict": "accept", "place": 0}, {"verdict": "drop", "place": 1})
    assert said.code == 0, said.err
    assert "review: http://127.0.0.1:" in said.err
    assert "written: corrections.jsonl, 1 accepted, 0 labelled, 1 dropped" in said.err
    assert "selftrain fit --from run --labelled labelled.csv" in said.err
    assert snapshot(life / "run") == before
    assert len((life / "corrections.jsonl").read_text().splitlines()) == 2


def test_a_row_that_is_corrected_twice_is_said_at_the_next_start(
    review: Callable[..., Any], life: Path
) -> None:
    line = REVIEW.replace("done", "run")
    review(line, *({"verdict": "label", "place": 3, "label": n} for n in (0, 1)))
    said = review(line)
    assert "1 row was corrected more than once: the last verdict counts" in said.err


def test_a_pool_that_lacks_some_texts_is_a_warning_with_the_count(
    review: Callable[..., Any], life: Path
) -> None:
    rows = (life / "pool.csv").read_text().splitlines()
    (life / "pool.csv").write_text("\n".join(rows[:-10]) + "\n")
    said = review()
    assert said.code == 0, said.err
    assert "of 24 rows of the run have no text in the file: left out" in said.err


@pytest.mark.parametrize("snaps", [False, True])
def test_the_browser_gets_a_private_file_in_place_of_the_token(
    review: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snaps: bool
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    monkeypatch.setattr(serve, "SNAPS", tmp_path if snaps else tmp_path / "nowhere")
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    opened = []

    def open_(url: str) -> bool:
        file = Path(url2pathname(urlsplit(url).path))
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)]
        opened.append((url, file, file.read_text("utf-8"), modes))
        return True

    monkeypatch.setattr("webbrowser.open", open_)
    said = review(REVIEW.replace("done", "run").replace(" --no-browser", ""))
    assert said.code == 0, said.err
    ((url, file, page, modes),) = opened
    token = said.err.partition("?token=")[2].split()[0]
    assert token not in url
    assert re.search(rf'refresh" content="0; url=http://127.0.0.1:\d+/\?token={token}"', page)
    assert "<script" not in page
    assert "default-src 'none'" in page
    if os.name != "nt":
        assert modes == [0o600, 0o700]
    assert file.parent.parent == (home if snaps else temporary)
    assert not file.parent.exists(), "it is removed at the end"


def test_a_browser_that_is_not_there_leaves_the_address(
    review: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    said = review(REVIEW.replace("done", "run").replace(" --no-browser", ""))
    assert said.code == 0, said.err
    assert "review: http://127.0.0.1:" in said.err
    assert "no browser was found: open the address above" in said.err
    assert not Path("corrections.jsonl").exists(), "nothing was decided"
