"""Reliable example sampling (lines 7-9 of Algorithm 1): a stream of votes becomes a lesson.

A shard keeps, for each pseudo class, the N_r largest keys (candidates for "easy") and a bounded
reservoir of the rest ("hard"); a long audit lies in a file. So memory grows with N_r, not with the
pool, unless each row is compared with all others (``align``, ranks). Noise is hashed from seed,
round and uid, so order and sharding change nothing, and two shards merge exactly.
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
from selftrain.method.scores import (
    Votes,
    aligned,
    certainty,
    confidence,
    joined,
    pseudo_label,
    ranks,
)
from selftrain.seeds import child, gumbel, uniform

Stream = Iterable[tuple[Sequence[Example], Votes]]

# ── scores: how reliable is each example? ────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every example the same: the "uniform" ablation, without reliable example sampling."""

    kind: Literal["alike"] = "alike"
    scale: Literal["raw"] = "raw"

    def __call__(self, sure: Tensor, _settled: Tensor) -> Tensor:
        """The score of each row, [N]."""
        return torch.ones_like(sure)


@dataclass(frozen=True, slots=True)
class Certain:
    """The certainty alone, or with ``invert`` what it lacks to 1 ("hard" examples, UST).

    That is the information gain; gains above 1, which three classes or more can have, count as 1.
    """

    invert: bool = False
    kind: Literal["certain"] = "certain"
    scale: Literal["raw"] = "raw"

    def __call__(self, _sure: Tensor, settled: Tensor) -> Tensor:
        """The score of each row, [N]."""
        return 1 - settled if self.invert else settled


@dataclass(frozen=True, slots=True)
class Reliable:
    """The paper's weight (Eq. 5): alpha · confidence + (1 - alpha) · certainty.

    Certainty lies in about [.95, 1] and confidence in [1/C, 1], so on the raw scale alpha hardly
    acts; ``scale = "rank"`` compares each example's place among the others instead.
    """

    alpha: float = 0.4
    scale: Literal["raw", "rank"] = "raw"
    kind: Literal["reliable"] = "reliable"

    def __post_init__(self) -> None:
        require(0 <= self.alpha <= 1, "alpha", self.alpha, "a number from 0 to 1")

    def __call__(self, sure: Tensor, settled: Tensor) -> Tensor:
        """The score of each row from its confidence and its certainty, [N]."""
        if self.scale == "rank":
            sure, settled = ranks(sure), ranks(settled)
        return self.alpha * sure + (1 - self.alpha) * settled


AnyScore = Annotated[Uniform | Certain | Reliable, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class LowVariance:
    """How much an easy row counts in the loss (UST): -scale · ln(variance + 1e-10).

    The variance over the passes is that of the pseudo label's probability; UST's published code
    takes class 0's, which is the same for two classes and a mistake for more.
    """

    scale: float = 0.1

    def __post_init__(self) -> None:
        require(self.scale > 0, "scale (LowVariance)", self.scale, "a number above 0")

    def __call__(self, variance: Tensor) -> Tensor:
        """The loss weight of each row, [N]."""
        return -self.scale * (variance + 1e-10).log()


# ── what one row became ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Candidate:
    """An example that may become easy or hard, with everything the audit will say of it."""

    example: Example
    label: int
    confidence: float
    certainty: float
    score: float
    soft: tuple[float, ...]
    weight: float  # in the loss
    key: float  # the larger, the sooner it is easy
    turn: float  # the smaller, the sooner it is taken of several with one key or score
    chance: float  # the smaller, the sooner it is kept among the hard


@dataclass(slots=True)
class Shard:
    """What is kept of a part of the pool; two shards merge into what the whole would give."""

    easy: dict[int, list[Candidate]] = field(default_factory=dict)
    hard: dict[int, list[Candidate]] = field(default_factory=dict)
    rows: Counter[int] = field(default_factory=Counter)
    """How many rows of each pseudo class were read."""
    audit: AuditBuilder = field(default_factory=AuditBuilder)


@dataclass(frozen=True, slots=True)
class Selection:
    """How D_r and D_h are taken from the pool. Called with a stream of votes, gives a lesson."""

    score: AnyScore = Reliable()
    count: int | None = 256
    """N_r, the number of easy rows, at most half of the pool; None with ``shares``."""
    shares: tuple[float, ...] | None = None
    """N_r as a share of the pool, by round; the last one holds for later rounds."""
    per_class: Literal["proportional", "equal", "none"] = "proportional"
    """How N_r is divided among the pseudo classes: the same share of each, as many rows of each, or
    the best rows whatever their class (the paper). Equal quotas flood a skewed pool with its rare
    class, round by round."""
    how: Literal["sample", "topk", "power"] = "sample"
    """Draw by weight (the paper), take the largest, or draw by weight to the power kappa."""
    kappa: float = 1.0
    label: Literal["mean", "deterministic", "vote"] = "mean"
    normalised: bool = False
    """Certainty as 1 - B / ln C, instead of max(0, 1 - B)."""
    align: bool = False
    """Divide probabilities by the pool's mean first: only where classes are balanced by design."""
    hard: Literal["rest", "bottom"] = "rest"
    """D_h: all that is not easy, or its least reliable quarter."""
    weigh: LowVariance | None = None
    """How much each easy row counts in the loss; None: all the same."""

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
        *,
        pool: int,
        number: int,
        seed: int,
        folder: Path | None = None,
    ) -> Lesson:
        """The lesson of a round, from the votes on its whole pool.

        A long audit takes room in ``folder``, else in the system's temporary one, while it lives.
        """
        wanted = self.size(pool, number)
        shard = self.keep(stream, labels, wanted, child(seed, "select", number), folder)
        return self.settle(shard, labels, gold, wanted)

    def keep(
        self,
        stream: Stream,
        labels: Sequence[str],
        wanted: int,
        seed: int,
        folder: Path | None = None,
    ) -> Shard:
        """Read a part of the pool and keep its candidates."""
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
        """What both shards together would have kept."""
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
        """Hand all but the N_r best of each class to the reservoir, and bound that by 4 N_r."""
        for label, rows in shard.easy.items():
            rows.sort(key=lambda row: (-row.key, row.turn, row.example.uid))
            shard.hard.setdefault(label, []).extend(rows[wanted:])
            del rows[wanted:]
            spare = shard.hard[label]
            spare.sort(key=lambda row: (row.chance, row.example.uid))
            del spare[4 * wanted :]

    def settle(
        self, shard: Shard, labels: Sequence[str], gold: tuple[Labelled, ...], wanted: int
    ) -> Lesson:
        """Decide quotas, and say of every row whether it became easy, hard or was left."""
        quota = self.quota(shard, wanted)
        easy = [row for label in sorted(quota) for row in shard.easy[label][: quota[label]]]
        hard: list[Candidate] = []
        for label in sorted(quota):
            rest = shard.easy[label][quota[label] :] + shard.hard.get(label, [])
            if self.hard == "bottom":
                rest.sort(key=lambda row: (row.score, row.turn, row.example.uid))
                rest = rest[: math.ceil(len(rest) / 4)]
            rest.sort(key=lambda row: (row.chance, row.example.uid))
            hard += rest[: 4 * wanted]
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
            # Both compare a row with all the others, so the votes of this pool are held: C + 2
            # numbers a row. Without them the stream goes through chunk by chunk.
            chunks = list(stream)
            held = [example for examples, _ in chunks for example in examples]
            stream = [(held, joined([votes for _, votes in chunks]))] if chunks else []
        for examples, votes in stream:
            settled = certainty(votes, normalised=self.normalised)  # [N]
            heard = balanced(votes) if self.align else votes
            if self.label == "deterministic" and heard.passes == 1:
                heard = replace(heard, mean=heard.plain)  # one pass of dropout is no mean of any
            label = pseudo_label(heard, self.label)  # [N]
            sure = confidence(heard, label)  # [N]
            score = self.score(sure, settled)  # [N]
            weight = torch.ones_like(sure)  # [N]
            if self.weigh is not None:
                weight = self.weigh(heard.variance.gather(1, label[:, None]).squeeze(1))
            soft = heard.plain if self.label == "deterministic" else heard.mean  # [N, C]
            for i, example in enumerate(examples):
                s = float(score[i])
                yield Candidate(
                    example,
                    int(label[i]),
                    float(sure[i]),
                    float(settled[i]),
                    s,
                    tuple(soft[i].tolist()),
                    float(weight[i]),
                    self.key(s, seed, example.uid),
                    uniform(child(seed, "ties"), example.uid),
                    uniform(child(seed, "hard"), example.uid),
                )

    def key(self, score: float, seed: int, uid: str) -> float:
        """The Gumbel-top-k key log s + noise; the score itself for topk.

        Keeping the largest keys draws without replacement with weight s (successive sampling:
        inclusion is not exactly proportional to s). A weight of zero enters only when positive
        weights run out, and then uniformly: hence the large step down instead of -inf.
        """
        if self.how == "topk":
            return score
        kappa = self.kappa if self.how == "power" else 1.0
        return (kappa * math.log(score) if score > 0 else -1e6) + gumbel(seed, uid)


def balanced(votes: Votes) -> Votes:
    """The votes of a whole pool with every class brought to the same mean."""
    return replace(
        votes,
        plain=aligned(votes.plain, votes.plain.mean(0)),
        mean=aligned(votes.mean, votes.mean.mean(0)),
        wins=aligned(votes.wins, votes.wins.mean(0)),
    )


def quotas(room: Mapping[int, int], wanted: int) -> dict[int, int]:
    """An equal share for each class present; what one class lacks is handed on, evenly.

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
            quota[max(quota, key=lambda each: (quota[each], -each))] -= 1
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
