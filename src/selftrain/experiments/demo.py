"""The demo data: downloaded once through pip, checked by its hash, split the same way every time.

The source distribution of vaderSentiment 3.3.2 (MIT) carries sentences with a mean human rating
from -4 to 4, by Hutto and Gilbert (ICWSM 2014). Three cuts are made of them: ``movies`` (positive
or negative?), ``sources`` (a movie review, a product review, news or a tweet?) and ``skewed`` (the
same question where some sources are rare). The movie
sentences are largely those of SST-2: the two are never independent. Sentences of one editorial or
one product review can stand on both sides of the ``sources`` cut. The add-on ``minilm-mlm`` was
trained on its product, news and tweet sentences as plain text, test rows included: on ``sources``
only ``minilm`` gives an honest score.

pip runs the setup.py of a source distribution to read its metadata; with ``--require-hashes`` it
does so only after the hash has matched, so it runs a file we know.
"""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from selftrain import disk
from selftrain.data.fewshot import sample
from selftrain.data.pool import text_key
from selftrain.data.read import Columns, Reading, read_labelled
from selftrain.data.rows import Example, Labelled, Notes, Split, uid_of
from selftrain.data.split import make_split
from selftrain.data.task import Task, from_labels
from selftrain.errors import DataError
from selftrain.seeds import child, uniform

ARCHIVE = "vaderSentiment-3.3.2.tar.gz"
SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
GROUND_TRUTH = {
    "movie": "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
    "product": "hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt",
    "news": "hutto_ICWSM_2014/nytEditorialSnippets_GroundTruth.txt",
    "tweet": "hutto_ICWSM_2014/tweets_GroundTruth.txt",
}
LARGEST = 16 * 2**20
"""Bytes we read of any one file or member; the largest real one has 2.4 million."""

MOVIES = Task(
    "movies",
    ("negative", "positive"),
    template="{text} It was {mask} .",
    words={"negative": ("terrible",), "positive": ("great",)},
)
SOURCES = Task(
    "sources",
    ("movie", "news", "product", "tweet"),
    template="{mask} : {text}",
    # BERT's vocabulary has no `tweet`.
    words={"movie": ("movie",), "news": ("news",), "product": ("product",), "tweet": ("twitter",)},
)
PER_SOURCE = 2_500
SKEWED = replace(SOURCES, name="skewed")
SKEW = {"movie": 1.0, "news": 0.42, "product": 0.17, "tweet": 0.08}
"""Which part of each source the cut ``skewed`` has: shares of 60, 25, 10 and 5 %."""
HELD_OUT = 1_000
SHOTS = 16

OWN_FILE_HINT = "take your own labelled file: selftrain demo --data FILE"


def rows_of(
    name: str,
    data: Path | None = None,
    columns: Columns = Columns(),
    how: Reading = Reading(),
    *,
    notes: Notes | None = None,
) -> tuple[Task, list[Labelled]]:
    """The task and the rows of a demo, ``movies``, ``sources`` or ``skewed``, or of one's own file.

    ``data`` is a labelled file with these columns, or the archive itself where there is no network.
    """
    cuts = {"movies": (MOVIES, movies), "sources": (SOURCES, sources), "skewed": (SKEWED, skewed)}
    if name not in cuts:
        raise DataError(f"there is no demo `{name}`; expected {' or '.join(cuts)}", "--cut movies")
    if data is not None and not data.name.endswith(".tar.gz"):
        rows = read_labelled(data, columns, how, notes=notes or Notes())
        pair = rows[0].example.pair is not None
        return from_labels((row.label for row in rows), name=data.stem, pair=pair), rows
    task, read = cuts[name]
    return task, read(data or fetch())


# ── fetching ──


def cache_folder() -> Path:
    """Where fetched files are kept: SELFTRAIN_CACHE, else the place the platform has for it."""
    chosen = os.environ.get("SELFTRAIN_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "selftrain"


def cached(cache: Path | None = None) -> bool:
    """Whether the demo set is in the cache."""
    return ((cache or cache_folder()) / ARCHIVE).is_file()


def fetch(cache: Path | None = None, *, sha256: str = SHA256) -> Path:
    """The archive's path in the cache; downloaded through pip if it is missing or damaged."""
    folder = cache or cache_folder()
    target = folder / ARCHIVE
    if target.is_file() and disk.sha256(target) == sha256:
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside its target, so that the move is one step: nobody ever sees half a file.
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            archive = _download(Path(temporary), sha256)
            _checked(archive, sha256)
            archive.replace(target)
    except OSError as error:
        raise DataError(
            f"the demo set cannot be saved in {folder}: {error.strerror}",
            "choose another folder: SELFTRAIN_CACHE=/tmp/selftrain selftrain demo",
        ) from None
    return target


def _download(into: Path, sha256: str) -> Path:
    wanted = into / "requirements.txt"
    wanted.write_text(f"vaderSentiment==3.3.2 --hash=sha256:{sha256}\n", encoding="utf-8")
    # -P: a file named pip.py where the user happens to stand is not ours to run.
    pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    patience = ["--timeout", "15", "--retries", "2"]
    what = ["--no-deps", "--no-binary", "vaderSentiment", "--require-hashes", "-r", str(wanted)]
    try:
        done = subprocess.run(
            [*pip, "download", "--quiet", *patience, *what, "--dest", str(into)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError("the demo set did not arrive within 5 minutes", OWN_FILE_HINT) from None
    if done.returncode:
        raise _refused(done.stderr)
    return into / ARCHIVE


def _refused(output: str) -> DataError:
    """Why pip did not fetch, in one line."""
    if "DO NOT MATCH THE HASHES" in output:
        return DataError(
            "the package index served another vaderSentiment 3.3.2 than the one we checked; "
            "nothing of it was run",
            OWN_FILE_HINT,
        )
    if "No module named pip" in output:
        return DataError(
            "the demo set is fetched by pip, which this Python does not have",
            f"{sys.executable} -m ensurepip, or {OWN_FILE_HINT}",
        )
    lines = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.strip()]
    reason = lines[-1] if lines else "pip gave no reason"
    return DataError(f"the demo set cannot be fetched: {reason}", f"go online, or {OWN_FILE_HINT}")


# ── reading ──


def movies(path: Path, *, sha256: str = SHA256) -> list[Labelled]:
    """Movie sentences rated at least 1 (positive) or at most -1 (negative); the rest is dropped."""
    archive = _checked(path, sha256)
    return [
        _row(text, "positive" if rating > 0 else "negative")
        for rating, text in _rated(archive, GROUND_TRUTH["movie"])
        if abs(rating) >= 1
    ]


def sources(path: Path, *, sha256: str = SHA256, per_source: int = PER_SOURCE) -> list[Labelled]:
    """Sentences labelled by their source, the same number of each."""
    archive = _checked(path, sha256)
    rows = [
        _row(text, source)
        for source, member in GROUND_TRUTH.items()
        for _, text in _rated(archive, member)
    ]
    chosen, _ = sample(distinct(rows), per_source, child(0, "demo sources"))
    return chosen


def skewed(path: Path, *, sha256: str = SHA256, per_source: int = PER_SOURCE) -> list[Labelled]:
    """Sentences labelled by their source, of which some are rare; dropped when the cut is built."""
    rows = sources(path, sha256=sha256, per_source=per_source)
    draw = child(0, "demo skewed")
    return [row for row in rows if uniform(draw, row.example.uid) < SKEW[row.label]]


def _row(text: str, label: str) -> Labelled:
    return Labelled(Example(uid_of(text), text), label)


def _rated(archive: bytes, member: str) -> Iterator[tuple[float, str]]:
    """Rating and text of each line that has a letter in it: id, rating, text, by tabs."""
    for line in _member(archive, member).splitlines():
        _, rating, text = line.split("\t")
        if any(map(str.isalpha, text)):
            yield float(rating), _tidy(text)


def _tidy(text: str) -> str:
    """The sentence as it was written: the files spell quotes as '' and & as &amp;."""
    return " ".join(html.unescape(text).replace("''", '"').split())


def _member(archive: bytes, name: str) -> str:
    """A text file of the archive inside the archive, read as a stream: nothing is unpacked."""
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as outer,
        tarfile.open(fileobj=outer.extractfile(INNER), mode="r|gz") as inner,
    ):
        found = (inner.extractfile(m) for m in inner if m.name == name and m.size <= LARGEST)
        file = next(found, None)
        if file is None:
            raise DataError(f"the archive holds no file {name} of a sane size", OWN_FILE_HINT)
        return file.read().decode("utf-8")


def _checked(path: Path, sha256: str) -> bytes:
    """The bytes of the archive, after a check of their hash."""
    try:
        with path.open("rb") as file:
            archive = file.read(LARGEST)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", OWN_FILE_HINT) from None
    found = hashlib.sha256(archive).hexdigest()
    if found != sha256:
        raise DataError(
            f"{path} is not the archive we know: sha256 is {found[:12]}…, expected {sha256[:12]}…",
            f"delete it and try again, or {OWN_FILE_HINT}",
        )
    return archive


# ── cutting ──


@dataclass(frozen=True, slots=True)
class DemoSplit:
    """One cut of the rows; no text is in two parts."""

    labelled: tuple[Labelled, ...]
    pool: tuple[Example, ...]
    design: tuple[Labelled, ...]
    """For every decision during development."""
    test: tuple[Labelled, ...]
    """Read by the closing table only."""

    def split(self, notes: Notes | None = None) -> Split:
        """What a run may see."""
        return make_split(self.labelled, self.pool, notes=notes or Notes())


def cut(
    rows: Iterable[Labelled], seed: int, *, shots: int = SHOTS, notes: Notes | None = None
) -> DemoSplit:
    """Test and design rows by uid hash, the same for every seed; then the labelled ones by seed.

    Test and design are plain random rows, not drawn by class. Rows fewer than 4,000 give a quarter
    to each of the two.
    """
    draw = child(0, "demo")
    ranked = sorted(distinct(rows), key=lambda row: uniform(draw, row.example.uid))
    size = min(HELD_OUT, len(ranked) // 4)
    labelled, pool = sample(ranked[2 * size :], shots, seed, notes=notes)
    design, test = ranked[size : 2 * size], ranked[:size]
    return DemoSplit(tuple(labelled), tuple(pool), design=tuple(design), test=tuple(test))


def distinct(rows: Iterable[Labelled]) -> list[Labelled]:
    """One row for each text, compared by letters and digits alone; none where labels differ."""
    alike: dict[str, list[Labelled]] = defaultdict(list)
    for row in rows:
        alike[_letters(row.example)].append(row)
    return [
        min(group, key=lambda row: row.example.uid)
        for group in alike.values()
        if len({row.label for row in group}) == 1
    ]


def _letters(example: Example) -> str:
    sides = [example.text] if example.pair is None else [example.text, example.pair]
    letters = ["".join(re.findall(r"\w", side.casefold())) for side in sides]
    return "\x1f".join(letters) if all(letters) else text_key(example)  # emoji differ by themselves
