"""Part files: the votes on some rows of a round, which another process annotated.

    parts/2/                     those of round 2
      0-of-8.parquet             a row for each pool row: its uid and the votes on it, no text
      0-of-8.json                what they belong to, and the sha256 of the other file

A part is finished when its JSON file is there, because that is written last. A part may come from
anyone: reading one follows no link, reads one chunk at a time and checks every number.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from selftrain.data.fewshot import fingerprint
from selftrain.data.rows import Example
from selftrain.disk import (
    LARGEST_JSON,
    check_local,
    damaged,
    plain_file,
    plain_folder,
    refusals,
    replacing,
    sha256,
    valid,
)
from selftrain.errors import RunError, check_format
from selftrain.method.scores import Votes
from selftrain.runs.read import read_manifest, records
from selftrain.runs.votes_file import VotesWriter, encoded, read_votes
from selftrain.training.annotate import MOST_PARTS, Part

FORMAT = 1
SHOWN = 8
"""Missing parts that an error names."""

Stream = Iterable[tuple[list[Example], Votes]]


# ── what a part belongs to ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Origin:
    """A round of a run, and the teacher that annotates in it."""

    run: str
    """A hash of task, method, seed, data and encoder; more rounds leave it as it is."""
    round: int
    teacher: str
    """The sha256 of the teacher's tensors."""


@dataclass(frozen=True, slots=True)
class Card:
    """What ``0-of-8.json`` holds."""

    format: int
    origin: Origin
    shard: int
    of: int
    first_chunk: int
    """The chunk of the round that the part begins with: it decides the dropout noise."""
    rows: int
    pool: str
    """A fingerprint of its rows, texts and order."""
    sha256: str
    """Of the file with the votes."""

    @property
    def part(self) -> Part:
        """Which part it is."""
        return Part(self.shard, self.of)


def next_round(run: Path) -> tuple[Origin, int]:
    """The round that a run trains next, and the number of the round that is its teacher."""
    found, manifest = records(run), read_manifest(run)
    if not found:
        raise RunError(
            f"{run} has no teacher yet",
            f"train it first: selftrain fit … -o {shlex.quote(str(run))} --parts parts",
        )
    last = found[-1]
    if last.last or last.number >= manifest.total_rounds:
        raise RunError(
            f"{run} is finished: no round is left to annotate for",
            "ask `selftrain fit` for more: --rounds N"
            if not last.last
            else "start another: -o NEW",
        )
    teacher = [record for record in found if record.accepted][-1]
    tensors = teacher.files["model.safetensors"]
    origin = Origin(manifest.digest(64), last.number + 1, tensors)
    return origin, teacher.number


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def is_finished(parts: Path, origin: Origin, part: Part) -> bool:
    """Whether this part is on disk, whole; one that another run or round left is an error."""
    path = _card_path(parts, origin.round, part)
    with refusals(path, "read"):
        if not os.path.lexists(path):
            return False
    card = _read_card(path)
    _check_origin(path, card, origin)
    _check_whole(path, card)
    return True


def prepare_folder(parts: Path) -> None:
    """Make the folder of parts, if it is not there."""
    check_local(parts, "a folder of parts")
    with refusals(parts, "write"):
        parts.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_part(parts: Path, origin: Origin, part: Part, stream: Stream, rows: int) -> Card:
    """Write the votes on a part of a round with so many rows, chunk by chunk."""
    path = _card_path(parts, origin.round, part)
    prepare_folder(path.parent)
    digest, count = hashlib.sha256(), 0
    with replacing(path.with_suffix(".parquet")) as place:
        with VotesWriter(place) as writer:
            for examples, votes in stream:
                writer.write(examples, votes)
                digest.update(fingerprint(examples).encode())
                count += len(examples)
        facts = {"pool": digest.hexdigest(), "sha256": sha256(place)}
    first = part.chunks(rows).start
    card = Card(FORMAT, origin, part.number, part.of, first, count, **facts)
    with replacing(path) as place:
        place.write_text(json.dumps(asdict(card), indent=2) + "\n", "utf-8")
    return card


def _card_path(parts: Path, number: int, part: Part) -> Path:
    return parts / str(number) / f"{part.number}-of-{part.of}.json"


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def any_part(parts: Path, number: int) -> bool:
    """Whether there is a finished part of this round."""
    return bool(_card_names(parts / str(number)))


def complete_cards(parts: Path, origin: Origin) -> list[Card]:
    """The cards of all parts of a round, in order; an error names those that are missing."""
    folder = parts / str(origin.round)
    cards = [_read_card(folder / name) for name in _card_names(folder)]
    for card in cards:
        _check_origin(_card_path(parts, origin.round, card.part), card, origin)
    sizes = sorted({card.of for card in cards})
    if not sizes:
        raise RunError(f"{folder} has no part of round {origin.round}", _how_to_annotate("0/8"))
    if len(sizes) > 1:
        raise RunError(
            f"{folder} has parts of {sizes[0]} and parts of {sizes[1]}: they overlap",
            f"remove those of one: rm {shlex.quote(str(folder))}/*-of-{sizes[0]}.*",
        )
    missing = sorted(set(range(sizes[0])) - {card.shard for card in cards})
    if missing:
        raise RunError(
            f"{_numbered(missing)} of {sizes[0]} of round {origin.round} "
            f"{'is' if len(missing) == 1 else 'are'} missing in {parts}",
            _how_to_annotate(f"{missing[0]}/{sizes[0]}"),
        )
    return sorted(cards, key=lambda card: card.shard)


def votes_of(
    parts: Path, card: Card, pool: Iterator[Example], rows: int, classes: int, passes: int
) -> Stream:
    """The next rows of a pool with so many, and the votes that a part has for them."""
    path = _card_path(parts, card.origin.round, card.part)
    _check_whole(path, card)
    sizes = card.part.chunk_sizes(rows)
    first = card.part.chunks(rows).start
    if (card.first_chunk, card.rows) != (first, sum(sizes)):
        raise damaged(
            path,
            f"has {card.rows:,} rows from chunk {card.first_chunk}; "
            f"expected {sum(sizes):,} from chunk {first}",
        )
    digest = hashlib.sha256()
    for uids, votes in read_votes(path.with_suffix(".parquet"), sizes, classes, passes):
        examples = list(islice(pool, len(uids)))
        digest.update(fingerprint(examples).encode())
        if list(map(encoded, examples)) != uids:
            raise _other_rows(path, card)
        yield examples, votes
    if digest.hexdigest() != card.pool:
        raise _other_rows(path, card)


def _card_names(folder: Path) -> list[str]:
    """The names of the cards in a folder; none where there is no folder."""
    if not os.path.lexists(folder):
        return []
    with refusals(folder, "read"):
        names = [path.name for path in plain_folder(folder).iterdir()]
    return sorted(name for name in names if re.fullmatch(r"[0-9]{1,9}-of-[0-9]{1,9}\.json", name))


def _read_card(path: Path) -> Card:
    with refusals(path, "read"):
        raw = plain_file(path, LARGEST_JSON).read_bytes()
    check_format(raw, str(path), FORMAT, RunError)
    card = valid(Card, raw, path)
    if not 0 <= card.shard < card.of <= MOST_PARTS:
        raise damaged(path, f"is part {card.shard} of {card.of}")
    if path.name != f"{card.shard}-of-{card.of}.json":
        raise damaged(path, f"is that of part {card.shard} of {card.of}")
    return card


def _check_origin(path: Path, card: Card, origin: Origin) -> None:
    """Raise for a part of another run, round or teacher."""
    problem = (
        "is a part of another run"
        if card.origin.run != origin.run
        else f"is a part of round {card.origin.round}; expected round {origin.round}"
        if card.origin.round != origin.round
        else "was annotated by another teacher than this run has"
        if card.origin.teacher != origin.teacher
        else ""
    )
    if problem:
        raise RunError(f"{path} {problem}", "give the folder of this run's parts, or an empty one")


def _check_whole(path: Path, card: Card) -> None:
    """Raise unless the votes are those that were written with the card."""
    votes = path.with_suffix(".parquet")
    with refusals(votes, "read"):
        if sha256(plain_file(votes)) != card.sha256:
            raise RunError(
                f"{votes} is not what was written: its sha256 differs",
                f"annotate the part again: rm {shlex.quote(str(path))}, then give its command",
            )


def _other_rows(path: Path, card: Card) -> RunError:
    return RunError(
        f"{path} was annotated from other rows than the pool has: it changed meanwhile",
        f"give the pool of the run, or annotate the part again: rm {shlex.quote(str(path))}, "
        f"then {_how_to_annotate(f'{card.shard}/{card.of}')}",
    )


def _how_to_annotate(shard: str) -> str:
    return f"selftrain annotate run labelled.csv --unlabelled pool.csv --shard {shard}"


def _numbered(numbers: Sequence[int]) -> str:
    """Numbers of parts for a message.

    >>> _numbered([3]), _numbered([3, 7]), _numbered(range(10))
    ('part 3', 'parts 3 and 7', 'parts 0, 1, 2, 3, 4, 5, 6, 7 and 2 more')
    """
    if len(numbers) == 1:
        return f"part {numbers[0]}"
    shown = [str(number) for number in numbers[:SHOWN]]
    more = f"{len(numbers) - SHOWN} more" if len(numbers) > SHOWN else shown.pop()
    return f"parts {', '.join(shown)} and {more}"
