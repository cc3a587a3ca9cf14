"""Reliable example sampling (lines 7-9 of Algorithm 1): a stream of votes becomes a lesson.

A shard holds, for each pseudo class, the N_r largest keys (candidates for "easy") and a bounded
reservoir of the other rows ("hard"); a long audit is in a file. So memory grows with N_r, not with
the pool, unless each row is compared with all others (``align``, ranks). Noise is hashed from seed,
round and uid: order and sharding change nothing, and two shards merge exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from selftrain.data.audit_lines import NOT_SELECTED, AuditBuilder
from selftrain.data.rows import AuditLine, Example, Labelled, Lesson
from selftrain.errors import require
from selftrain.method import scores
from selftrain.method.scores import Votes, aligned, joined, pseudo_label, ranks
from selftrain.seeds import child, gumbel, uniform

Stream = Iterable[tuple[Sequence[Example], Votes]]

# ── scores: how reliable is each example? ────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every example has the same score: the "uniform" ablation."""

    kind: Literal["alike"] = "alike"
    """Names this score."""
    scale: Literal["raw"] = "raw"
    """Has one value: nothing is ranked."""

    def __call__(self, confidence: Tensor, _certainty: Tensor) -> Tensor:
        """The score of each row, [N]."""
        return torch.ones_like(confidence)


@dataclass(frozen=True, slots=True)
class Certain:
    """The certainty alone, or with ``invert`` 1 minus the certainty ("hard" examples, UST).

    That is the information gain; gains above 1, which three classes or more can have, count as 1.
    """

    invert: bool = False
    """Score by 1 - certainty: the least certain examples first."""
    kind: Literal["certain"] = "certain"
    """Names this score."""
    scale: Literal["raw"] = "raw"
    """Has one value: nothing is ranked."""

    def __call__(self, _confidence: Tensor, certainty: Tensor) -> Tensor:
        """The score of each row, [N]."""
        return 1 - certainty if self.invert else certainty


@dataclass(frozen=True, slots=True)
class Reliable:
    """The paper's weight (Eq. 5): alpha · confidence + (1 - alpha) · certainty.

    Certainty lies in about [.95, 1] and confidence in [1/C, 1], so on the raw scale alpha hardly
    acts; ``scale = "rank"`` compares each example's place among the others instead.
    """

    alpha: float = 0.4
    """The part of confidence, from 0 to 1; certainty has the other part."""
    scale: Literal["raw", "rank"] = "raw"
    """Mix the values themselves, or each example's rank among all of the pool."""
    kind: Literal["reliable"] = "reliable"
    """Names this score."""

    def __post_init__(self) -> None:
        require(0 <= self.alpha <= 1, "alpha", self.alpha, "a number from 0 to 1")

    def __call__(self, confidence: Tensor, certainty: Tensor) -> Tensor:
        """The score of each row from its confidence and its certainty, [N]."""
        if self.scale == "rank":
            confidence, certainty = ranks(confidence), ranks(certainty)
        return self.alpha * confidence + (1 - self.alpha) * certainty


AnyScore = Annotated[Uniform | Certain | Reliable, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class LowVariance:
    """How much an easy row counts in the loss (UST): -scale · ln(variance + 1e-10).

    The variance over the passes is that of the pseudo label's probability; UST's published code
    takes class 0's, which is the same for two classes and a mistake for more.
    """

    scale: float = 0.1
    """Multiplies every weight."""

    def __post_init__(self) -> None:
        require(self.scale > 0, "scale (LowVariance)", self.scale, "a number above 0")

    def __call__(self, variance: Tensor) -> Tensor:
        """The loss weight of each row, [N]."""
        return -self.scale * (variance + 1e-10).log()


# ── candidates for easy and hard ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Candidate:
    """An example that may become easy or hard, with every number of its audit line."""

    example: Example
    label: int
    confidence: float
    certainty: float
    score: float
    soft: tuple[float, ...]
    weight: float  # in the loss
    key: float  # the larger, the sooner it is easy
    turn: float  # the smaller, the sooner it is taken of several with one key or score
    chance: float  # the smaller, the sooner it stays among the hard


@dataclass(slots=True)
class Shard:
    """The candidates of a part of the pool; merged shards equal the shard of the whole pool."""

    easy: dict[int, list[Candidate]] = field(default_factory=dict)
    """By pseudo class, the N_r rows with the largest keys."""
    hard: dict[int, list[Candidate]] = field(default_factory=dict)
    """By pseudo class, a reservoir of the other rows."""
    rows: Counter[int] = field(default_factory=Counter)
    """How many rows of each pseudo class were read."""
    audit: AuditBuilder = field(default_factory=AuditBuilder)
    """A line for each row that was read."""


@dataclass(frozen=True, slots=True)
class RoundDraw:
    """Which draw of a run a selection makes: the size of the pool, the round, and the seed."""

    pool: int
    """Rows of the pool that the teacher annotates in this round."""
    number: int
    """The round, from 1."""
    seed: int
    """The seed of the run."""
    turn: int | None = None
    """The place of the round among those of its kind, which chooses the share; None is
    ``number``."""


@dataclass(frozen=True, slots=True)
class Selection:
    """How the easy rows D_r and the hard rows D_h are taken from the pool."""

    score: AnyScore = Reliable()
    """How reliable a row is: rows with a higher score are easy sooner."""
    count: int | None = 256
    """N_r, the number of easy rows, at most half of the pool. Left out where ``shares`` is set."""
    shares: tuple[float, ...] | None = None
    """N_r as a share of the pool, one for each round; later rounds use the last one. Left out,
    ``count`` decides."""
    per_class: Literal["proportional", "equal", "none"] = "proportional"
    """How N_r is divided among the pseudo classes: the same share of each, the same number of each,
    or the best rows of any class (the paper). With equal numbers a rare class grows too large in a
    skewed pool, round by round."""
    how: Literal["sample", "topk", "power"] = "sample"
    """Draw by score (the paper), take the largest scores, or draw by score to the power kappa."""
    kappa: float = 1.0
    """The exponent of ``how = "power"``; the other ways ignore it."""
    label: Literal["mean", "deterministic", "vote"] = "mean"
    """The pseudo label: best class of the mean over the passes, of the pass without dropout (the
    paper), or the class that most passes choose."""
    normalised: bool = False
    """Certainty as 1 - B / ln C, instead of max(0, 1 - B)."""
    align: bool = False
    """Divide probabilities by the pool's mean first. Use it only if the classes are balanced."""
    hard: Literal["rest", "bottom"] = "rest"
    """D_h: all rows that are not easy, or the least reliable quarter of them."""
    weigh: LowVariance | None = None
    """How much each easy row counts in the loss. Left out, all rows count the same."""

    def __post_init__(self) -> None:
        one = (self.count is None) != (self.shares is None)
        require(one, "count and shares", (self.count, self.shares), "exactly one of them")
        require(self.count is None or self.count >= 1, "N_r (count)", self.count, "1 or more")
        for share in self.shares or ():
            require(0 < share <= 1, "shares", share, "numbers above 0 and at most 1")
        require(self.shares is None or len(self.shares) > 0, "shares", self.shares, "a number")
        require(self.kappa > 0, "kappa", self.kappa, "a number above 0")

    def size(self, pool: int, number: int) -> int:
        """N_r in this round, for a pool of this many rows."""
        if self.shares is None:
            return min(self.count or 0, max(1, pool // 2))  # or nothing would be left to be hard
        return max(1, round(self.shares[min(number, len(self.shares)) - 1] * pool))

    def __call__(
        self,
        stream: Stream,
        labels: Sequence[str],
        gold: tuple[Labelled, ...],
        draw: RoundDraw,
        *,
        folder: Path | None = None,
    ) -> Lesson:
        """The lesson of a round, from the votes on all rows of its pool.

        A long audit is a temporary file in ``folder``, or in the system's temporary folder.
        """
        wanted = self.size(draw.pool, draw.turn or draw.number)
        seed = child(draw.seed, "select", draw.number)
        shard = self.shard_of(stream, labels, wanted, seed, folder)
        return self.lesson_of(shard, labels, gold, wanted)

    def shard_of(
        self,
        stream: Stream,
        labels: Sequence[str],
        wanted: int,
        seed: int,
        folder: Path | None = None,
    ) -> Shard:
        """The candidates of a part of the pool."""
        shard = Shard(audit=AuditBuilder(folder))
        for candidate in self.candidates(stream, seed):
            shard.audit.add(audit_line(candidate, labels))
            shard.rows[candidate.label] += 1
            shard.easy.setdefault(candidate.label, []).append(candidate)
            if len(shard.easy[candidate.label]) > 2 * wanted + 64:
                self.prune(shard, wanted)
        self.prune(shard, wanted)
        return shard

    def merge(self, one: Shard, other: Shard, wanted: int, folder: Path | None = None) -> Shard:
        """The shard of both parts together, for a pool that several workers read."""
        shard = Shard(audit=AuditBuilder(folder))
        for part in (one, other):
            shard.rows.update(part.rows)
            for line in part.audit:
                shard.audit.add(line)
            for source, target in ((part.easy, shard.easy), (part.hard, shard.hard)):
                for label, rows in source.items():
                    target.setdefault(label, []).extend(rows)
        self.prune(shard, wanted)
        return shard

    def prune(self, shard: Shard, wanted: int) -> None:
        """Move all but the N_r best of each class to the reservoir, and cut that to 4 N_r."""
        for label, rows in shard.easy.items():
            rows.sort(key=lambda row: (-row.key, row.turn, row.example.uid))
            shard.hard.setdefault(label, []).extend(rows[wanted:])
            del rows[wanted:]
            reservoir = shard.hard[label]
            reservoir.sort(key=lambda row: (row.chance, row.example.uid))
            del reservoir[4 * wanted :]

    def lesson_of(
        self, shard: Shard, labels: Sequence[str], gold: tuple[Labelled, ...], wanted: int
    ) -> Lesson:
        """Decide quotas, and with them the role of every row: easy, hard or left."""
        quota = self.quota(shard, wanted)
        easy = [row for label in sorted(quota) for row in shard.easy[label][: quota[label]]]
        hard: list[Candidate] = []
        for label in sorted(quota):
            not_easy = shard.easy[label][quota[label] :] + shard.hard.get(label, [])
            if self.hard == "bottom":
                not_easy.sort(key=lambda row: (row.score, row.turn, row.example.uid))
                not_easy = not_easy[: math.ceil(len(not_easy) / 4)]
            not_easy.sort(key=lambda row: (row.chance, row.example.uid))
            hard += not_easy[: 4 * wanted]
        roles = {row.example.uid: "easy" for row in easy}
        roles.update({row.example.uid: "hard" for row in hard})
        return Lesson(
            gold=gold,
            easy=tuple(labelled(row, labels) for row in easy),
            hard=tuple(labelled(row, labels) for row in hard),
            audit=shard.audit.with_roles(roles),
        )

    def quota(self, shard: Shard, wanted: int) -> dict[int, int]:
        """How many easy rows each pseudo class gives."""
        if self.per_class == "proportional":
            return proportional(shard.rows, wanted)
        if self.per_class == "equal":
            return quotas({label: len(rows) for label, rows in shard.easy.items()}, wanted)
        best = sorted(
            (row for rows in shard.easy.values() for row in rows),
            key=lambda row: (-row.key, row.turn, row.example.uid),
        )[:wanted]
        return {label: sum(row.label == label for row in best) for label in shard.easy}

    def candidates(self, stream: Stream, seed: int) -> Iterator[Candidate]:
        """Each example with its pseudo label, score and keys."""
        if self.align or self.score.scale == "rank":
            # Both compare a row with all the others, so all votes stay in memory: C + 2 numbers a
            # row. Otherwise the stream passes through chunk by chunk.
            stream = in_one_chunk(stream)
        for examples, raw_votes in stream:
            certainty = scores.certainty(raw_votes, normalised=self.normalised)  # [N]
            votes = balanced(raw_votes) if self.align else raw_votes
            if self.label == "deterministic" and votes.passes == 1:
                votes = replace(votes, mean=votes.plain)  # one pass of dropout is no mean
            label = pseudo_label(votes, self.label)  # [N]
            confidence = scores.confidence(votes, label)  # [N]
            score = self.score(confidence, certainty)  # [N]
            weight = torch.ones_like(confidence)  # [N]
            if self.weigh is not None:
                weight = self.weigh(votes.variance.gather(1, label[:, None]).squeeze(1))
            soft = votes.plain if self.label == "deterministic" else votes.mean  # [N, C]
            for i, example in enumerate(examples):
                s = float(score[i])
                yield Candidate(
                    example,
                    int(label[i]),
                    float(confidence[i]),
                    float(certainty[i]),
                    s,
                    tuple(soft[i].tolist()),
                    float(weight[i]),
                    self.key(s, seed, example.uid),
                    uniform(child(seed, "ties"), example.uid),
                    uniform(child(seed, "hard"), example.uid),
                )

    def key(self, score: float, seed: int, uid: str) -> float:
        """The Gumbel-top-k key log s + noise; the score itself for topk.

        To take the largest keys is to draw without replacement with weight s (successive sampling:
        inclusion is not exactly proportional to s). A weight of zero enters only when positive
        weights run out, and then uniformly: hence the large step down instead of -inf.
        """
        if self.how == "topk":
            return score
        kappa = self.kappa if self.how == "power" else 1.0
        return (kappa * math.log(score) if score > 0 else -1e6) + gumbel(seed, uid)


def in_one_chunk(stream: Stream) -> Stream:
    """The same rows and votes as at most one chunk."""
    chunks = list(stream)
    examples = [example for chunk, _ in chunks for example in chunk]
    return [(examples, joined([votes for _, votes in chunks]))] if chunks else []


def balanced(votes: Votes) -> Votes:
    """The votes on a pool, with every class brought to the same mean."""
    return replace(
        votes,
        plain=aligned(votes.plain, votes.plain.mean(0)),
        mean=aligned(votes.mean, votes.mean.mean(0)),
        wins=aligned(votes.wins, votes.wins.mean(0)),
    )


def quotas(room: Mapping[int, int], wanted: int) -> dict[int, int]:
    """The same number for each class present; what one class lacks, the others share evenly.

    >>> quotas({0: 10, 1: 2, 2: 10}, 12)
    {0: 5, 1: 2, 2: 5}
    """
    quota = dict.fromkeys(room, 0)
    open_classes = sorted(label for label in room if room[label])
    left = min(wanted, sum(room.values()))
    while left:
        share, extra = divmod(left, len(open_classes))
        for place, label in enumerate(open_classes):
            give = min(share + (place < extra), room[label] - quota[label])
            quota[label] += give
            left -= give
        open_classes = [label for label in open_classes if quota[label] < room[label]]
    return quota


def proportional(rows: Mapping[int, int], wanted: int) -> dict[int, int]:
    """The same share of each class, by largest remainders; no class that has rows is left out.

    >>> proportional({0: 88, 1: 12}, 25)
    {0: 22, 1: 3}
    >>> proportional({0: 198, 1: 1, 2: 1}, 10)
    {0: 8, 1: 1, 2: 1}
    """
    total = sum(rows.values())
    wanted = min(wanted, total)
    exact = {label: wanted * count / total for label, count in rows.items() if count}
    quota = {label: math.floor(share) for label, share in exact.items()}
    by_remainder = sorted(exact, key=lambda label: (quota[label] - exact[label], label))
    for label in by_remainder[: wanted - sum(quota.values())]:
        quota[label] += 1
    if wanted >= len(quota):
        for label in sorted(label for label in quota if not quota[label]):
            quota[max(quota, key=lambda other: (quota[other], -other))] -= 1
            quota[label] = 1
    return dict.fromkeys(rows, 0) | quota


def audit_line(row: Candidate, labels: Sequence[str]) -> AuditLine:
    """The audit's line for a candidate, before its role is known."""
    return AuditLine(
        row.example.uid, labels[row.label], row.confidence, row.certainty, row.score, NOT_SELECTED
    )


def labelled(row: Candidate, labels: Sequence[str]) -> Labelled:
    """The candidate as a row of a lesson."""
    return Labelled(row.example, labels[row.label], row.weight, row.soft)
