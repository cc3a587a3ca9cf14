"""Every equation of the paper on numbers worked out by hand, and Algorithm 1's draw.

A docstring's "Eq. 4" or "Algorithm 1, line 9" puts a test into docs/paper-map.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForMaskedLM

from by_hand import example, random_votes, votes
from selftrain.data.rows import Example, Labelled
from selftrain.data.task import Task
from selftrain.method.losses import PHCE, CrossEntropy, contrast, phce
from selftrain.method.scores import certainty, confidence, information_gain, pseudo_label
from selftrain.method.selection import Reliable, RoundDraw, Selection
from selftrain.model.architecture import Architecture
from selftrain.model.build import build
from selftrain.model.pel import Full

# Two rows, two passes, two classes.
#   row 0   (1, 0) and (0, 1): the passes contradict each other outright
#   row 1   (.9, .1) and (.7, .3): they agree, one more firmly than the other
OPPOSITE, AGREEING = [[1.0, 0.0], [0.0, 1.0]], [[0.9, 0.1], [0.7, 0.3]]
TWO_ROWS = [[OPPOSITE[0], AGREEING[0]], [OPPOSITE[1], AGREEING[1]]]  # [T, N, C]


def log(p: Sequence[Sequence[float]]) -> torch.Tensor:
    """Logits whose softmax is p."""
    return torch.tensor(p, dtype=torch.float64).log()


FILMS = Task(
    "films",
    ("bad", "good"),
    template="{text} It was {mask} .",
    words={"bad": ("terrible",), "good": ("great",)},
)
FILM = Example("film", "the story was long and dull")

# ── Eq. 1: the pseudo label ──────────────────────────────────────────────────────────────────


def test_pseudo_label_is_the_most_probable_class_with_dropout_off():
    """Eq. 1."""
    seen = votes([[[0.9, 0.05, 0.05], [0.0, 0.0, 1.0]]], plain=[[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    assert pseudo_label(seen, "deterministic").tolist() == [1, 0]


def test_mean_and_vote_may_name_another_class_than_the_plain_pass():
    """Eq. 1, and Eq. 13 for the mean.

    Passes (.4, .6), (.4, .6), (.9, .1): class 1 wins two of three passes, yet the mean is
    (1.7/3, 1.3/3) = (.567, .433), so class 0.
    """
    seen = votes([[[0.4, 0.6]], [[0.4, 0.6]], [[0.9, 0.1]]], plain=[[0.45, 0.55]])
    assert pseudo_label(seen, "deterministic").tolist() == [1]
    assert pseudo_label(seen, "mean").tolist() == [0]
    assert pseudo_label(seen, "vote").tolist() == [1]


# ── Eq. 12, 13: the Bayesian network ─────────────────────────────────────────────────────────


def test_predictive_mean_is_the_average_over_dropout_masks():
    """Eq. 12, 13: p(y|x) = 1/T Σ_t p(y|x, W_t); (.9 + .7) / 2 = .8."""
    torch.testing.assert_close(
        votes(TWO_ROWS).mean, torch.tensor([[0.5, 0.5], [0.8, 0.2]], dtype=torch.float64)
    )


# ── Eq. 2, 3: information gain ───────────────────────────────────────────────────────────────


def test_information_gain_of_two_opposite_votes_is_ln_2():
    """Eq. 2, 3: H(.5, .5) = ln 2, and each pass is sure of itself: H(1, 0) = H(0, 1) = 0."""
    assert information_gain(votes(TWO_ROWS))[0] == pytest.approx(math.log(2), abs=1e-15)


def test_information_gain_of_two_agreeing_votes_is_small():
    """Eq. 3.

    H(.8, .2) = -.8 ln .8 - .2 ln .2 = .178515 + .321888 = .500402
    H(.9, .1) = .094824 + .230259 = .325083;  H(.7, .3) = .249672 + .361192 = .610864
    B = .500402 - (.325083 + .610864) / 2 = .032429
    """
    assert information_gain(votes(TWO_ROWS))[1] == pytest.approx(0.032429, abs=1e-6)


def test_information_gain_is_zero_when_all_passes_agree():
    """Eq. 3: a teacher that is always equally unsure learns nothing about its weights."""
    assert information_gain(votes([[[0.5, 0.5]]] * 7)).tolist() == [0.0]


def test_information_gain_from_t_passes_is_low_by_t_minus_1_over_t():
    """Eq. 3, as an estimate of Eq. 2: 2 passes give about half of it, 10 passes nine tenths.

    With small noise B is half the variance over the mean in each class, and a variance over T
    with ddof 0 comes out at (T-1)/T of itself. The same 20,000 rows for both; over seeds the
    ratio spreads by 0.7 %, so 3 % is four standard deviations.
    """
    two = information_gain(random_votes(20_000, 3, passes=2, seed=1, noise=0.3)).mean()
    ten = information_gain(random_votes(20_000, 3, passes=10, seed=1, noise=0.3)).mean()
    assert float(two / ten) == pytest.approx((1 / 2) / (9 / 10), rel=0.03)


# ── Eq. 4: certainty; and confidence ─────────────────────────────────────────────────────────


def test_certainty_is_one_minus_the_information_gain():
    """Eq. 4: 1 - ln 2 = .306853 and 1 - .032429 = .967571."""
    assert certainty(votes(TWO_ROWS)).tolist() == pytest.approx([0.306853, 0.967571], abs=1e-6)


def test_certainty_never_goes_below_zero_with_five_classes():
    """Eq. 4: five passes, each sure of another class: B = ln 5 = 1.609, and 1 - B is negative."""
    seen = votes(torch.eye(5)[:, None])
    assert information_gain(seen).item() == pytest.approx(1.609438, abs=1e-6)
    assert certainty(seen).tolist() == [0.0]


def test_certainty_can_be_normalised_by_ln_c():
    """Eq. 4, our option: 1 - B / ln C; .032429 / .693147 = .046785, and ln 2 / ln 2 = 1."""
    normalised = certainty(votes(TWO_ROWS), normalised=True)
    assert normalised.tolist() == pytest.approx([0, 0.953215], abs=1e-6)
    assert normalised[0] < 1e-15, "ln C must be as exact as the gain"


def test_confidence_is_the_mean_probability_of_the_pseudo_label():
    """Algorithm 1, line 8: the same passes as the certainty; .8 for class 0 and .2 for class 1."""
    seen = votes([[AGREEING[0]] * 2, [AGREEING[1]] * 2])
    assert confidence(seen, torch.tensor([0, 1])).tolist() == pytest.approx([0.8, 0.2])


# ── Eq. 5: the sampling weight, and line 9: the draw ─────────────────────────────────────────

CONFIDENCE, CERTAINTY = torch.tensor([0.9, 0.6]), torch.tensor([0.95, 1.0])


def test_weight_mixes_confidence_and_certainty():
    """Eq. 5: .4·.9 + .6·.95 = .36 + .57 = .93;  .4·.6 + .6·1 = .24 + .6 = .84."""
    assert Reliable(alpha=0.4)(CONFIDENCE, CERTAINTY).tolist() == pytest.approx([0.93, 0.84])


def test_alpha_one_ignores_certainty():
    """Eq. 5."""
    assert Reliable(alpha=1)(CONFIDENCE, CERTAINTY).tolist() == CONFIDENCE.tolist()


def test_alpha_zero_ignores_confidence():
    """Eq. 5."""
    assert Reliable(alpha=0)(CONFIDENCE, CERTAINTY).tolist() == CERTAINTY.tolist()


def test_normalising_the_weights_would_change_no_draw():
    """Eq. 5: dividing by Σ s lowers every key log s + noise by the same amount."""
    pick = Selection()
    weights = {example(i).uid: 0.5 + i / 20 for i in range(10)}
    total = sum(weights.values())

    def order(scale: float) -> list[str]:
        return sorted(weights, key=lambda uid: pick.key(weights[uid] / scale, 12, uid))

    assert order(1) == order(total)


def test_easy_rows_are_drawn_and_the_rest_is_hard():
    """Algorithm 1, lines 7-9: D_r has N_r rows, D_h = D_u' \\ D_r."""
    pool = [example(i) for i in range(40)]
    lesson = lesson_of(Selection(count=10, per_class="none"), pool, seed=3)
    easy = {item.example.uid for item in lesson.easy}
    hard = {item.example.uid for item in lesson.hard}
    assert len(easy) == 10
    assert hard == {item.uid for item in pool} - easy


def test_the_lesson_carries_the_teachers_labels():
    """Algorithm 1, line 5: the pseudo label of each drawn row is the teacher's, by name."""
    pool = [example(i) for i in range(40)]
    seen = random_votes(40, 2, passes=4, seed=3)
    named = dict(zip((e.uid for e in pool), pseudo_label(seen).tolist(), strict=True))
    lesson = lesson_of(Selection(count=10), pool, seed=3)
    for item in (*lesson.easy, *lesson.hard):
        assert item.label == ("no", "yes")[named[item.example.uid]]


def lesson_of(pick: Selection, pool: Sequence[Example], seed: int):
    stream = [(list(pool), random_votes(len(pool), 2, passes=4, seed=3))]
    gold = (Labelled(example("gold"), "yes"),)
    return pick(stream, ("no", "yes"), gold, RoundDraw(len(pool), 1, seed))


def test_the_papers_weights_are_nearly_flat():
    """Eq. 5: why the paper's sampling is close to plain self-training.

    The effective sample size (Σ s)² / (N Σ s²) is 1 for equal weights. On a simulated teacher
    of two classes with dropout noise, the paper's alpha leaves it at 99 %; and the mean label
    accuracy of a draw by weight exceeds that of the whole pool by a few points only, where the
    largest weights alone are nearly clean.
    """
    n, generator = 20_000, torch.Generator().manual_seed(12)
    margin = torch.randn(n, generator=generator, dtype=torch.float64) * 1.6 + 0.5
    gold = torch.rand(n, generator=generator, dtype=torch.float64) < (1.6 * margin).sigmoid()
    noise = torch.randn(10, n, generator=generator, dtype=torch.float64) * 0.3
    one = (margin + noise).sigmoid()
    seen = votes(torch.stack([1 - one, one], -1))
    label = pseudo_label(seen)
    s = Reliable(alpha=0.4)(confidence(seen, label), certainty(seen))
    effective = float(s.sum() ** 2 / (n * (s**2).sum()))
    right = (label == gold).double()
    by_weight, best = float((s * right).sum() / s.sum()), s.topk(n // 8).indices
    assert effective == pytest.approx(0.99, abs=0.01)
    assert 0 < by_weight - float(right.mean()) < 0.03
    assert float(right[best].mean()) > 0.98


# ── Eq. 6, 7: the classifier ─────────────────────────────────────────────────────────────────


def test_a_head_is_a_softmax_over_a_linear_map_of_the_pooled_vector(tiny_backbone):
    """Eq. 6: p = softmax(W h + b), with h the vector at the first token."""
    model = build(FILMS, tiny_backbone("bert"), Architecture(Full()), seed=1)
    (row,) = model.encode([FILM])
    with torch.no_grad():
        hidden = model.encoder(input_ids=torch.tensor([row.ids])).last_hidden_state  # [1, L, D]
        logits = hidden[:, 0] @ model.head.out.weight.T + model.head.out.bias
    torch.testing.assert_close(model.probabilities([FILM]), logits.softmax(1))


def test_a_prompt_is_a_softmax_over_the_label_words_at_the_mask(tiny_backbone):
    """Eq. 7: p(y) = softmax over y of the language model's logit for the word of y."""
    backbone = tiny_backbone("bert")
    model = build(FILMS, backbone, Architecture(Full(), "prompt"), seed=1)
    words = backbone.tokenizer.convert_tokens_to_ids(["terrible", "great"])
    row = backbone.tokenizer(f"{FILM.text} It was [MASK] .", return_tensors="pt")
    at = (row["input_ids"][0] == backbone.tokenizer.mask_token_id).nonzero().item()
    plm = AutoModelForMaskedLM.from_pretrained(backbone.name).eval()
    with torch.no_grad():
        logits = plm(**row).logits[0, at]  # [V]
    expected = logits[words].softmax(0)
    torch.testing.assert_close(model.probabilities([FILM])[0], expected, atol=1e-5, rtol=1e-4)


# ── Eq. 8, 9, 14: cross entropy and PHCE ─────────────────────────────────────────────────────

P = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.25, 0.5, 0.25]]
LABELS = torch.tensor([1, 0, 1])  # p of the label: .2, .7, .5
SOFT = torch.zeros(3, 3)


def test_cross_entropy_is_minus_log_p():
    """Eq. 8: -ln .2 = 1.609438, -ln .7 = .356675, -ln .5 = .693147: positive, unlike as printed."""
    each = CrossEntropy()(log(P), LABELS, SOFT)
    assert each.tolist() == pytest.approx([1.609438, 0.356675, 0.693147], abs=1e-6)


def test_phce_is_a_line_below_one_over_tau_and_cross_entropy_above():
    """Eq. 9, 14 at tau = 4, so the joint is at .25.

    p = .2   -4·.2 + ln 4 + 1 = -.8 + 1.386294 + 1 = 1.586294   (cross entropy says 1.609438)
    p = .7   -ln .7 = .356675;   p = .5   -ln .5 = .693147
    """
    each = PHCE(tau=4)(log(P), LABELS, SOFT)
    assert each.tolist() == pytest.approx([1.586294, 0.356675, 0.693147], abs=1e-6)


def test_phce_of_an_impossible_label_is_log_tau_plus_one():
    """Eq. 14 at p = 0: ln 10 + 1 = 3.302585, where cross entropy is infinite."""
    assert phce(torch.tensor([-math.inf]), 10.0).tolist() == pytest.approx([3.302585], abs=1e-6)


@pytest.mark.parametrize("tau", [1.5, 2.0, 4.0, 10.0])
def test_phce_is_smooth_at_the_joint(tau):
    """Eq. 14: at p = 1/tau both sides are worth ln tau, and both slopes in p are -tau."""
    joint, step = 1 / tau, 1e-7
    p = torch.tensor([joint - step, joint, joint + step], dtype=torch.float64)
    below, at, above = phce(p.log(), tau).tolist()
    assert at == pytest.approx(math.log(tau), abs=1e-12)
    assert (at - below) / step == pytest.approx(-tau, rel=1e-5)
    assert (above - at) / step == pytest.approx(-tau, rel=1e-5)


# ── Eq. 10: contrast ─────────────────────────────────────────────────────────────────────────

ANCHOR, POSITIVE = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]])
NEGATIVES = torch.tensor([[[0.0, 1.0], [0.8, 0.6]]])


def test_contrast_of_one_positive_and_two_negatives():
    """Eq. 10 at temperature .5.

    cosines: positive .6, negatives 0 and .8;  g = 1.2, 0 and 1.6
    e^1.2 = 3.320117;  (e^0 + e^1.6) / 2 = (1 + 4.953032) / 2 = 2.976516
    -ln[ 3.320117 / (3.320117 + 2.976516) ] = -ln .527284 = .640015
    """
    each = contrast(ANCHOR, POSITIVE, NEGATIVES, temperature=0.5)
    assert each.tolist() == pytest.approx([0.640015], abs=1e-6)


def test_minimising_the_contrast_brings_positives_together():
    """Eq. 10: as the paper prints it, without -log, it would push them apart."""
    near, far = torch.tensor([[0.8, 0.6]]), torch.tensor([[0.0, 1.0]])
    values = [float(contrast(ANCHOR, x, NEGATIVES, 0.5)) for x in (near, POSITIVE, far)]
    assert values[0] < values[1] < values[2]


def test_contrast_ignores_the_length_of_the_vectors():
    """Eq. 10: g is a cosine."""
    long = contrast(ANCHOR * 7, POSITIVE * 0.1, NEGATIVES * 3, 0.5)
    torch.testing.assert_close(long, contrast(ANCHOR, POSITIVE, NEGATIVES, 0.5))


def test_aligned_labels_use_every_class():
    """Eq. 1 after distribution alignment (ours).

    p = (.9, .1), (.6, .4): the mean is (.75, .25), and row 1 becomes (.8, 1.6) / 2.4: class 1.
    """
    pick = Selection(count=None, shares=(1.0,), align=True)
    stream = [([example(0), example(1)], votes([[[0.9, 0.1], [0.6, 0.4]]]))]
    lesson = pick(stream, ("no", "yes"), (), RoundDraw(2, 1, 12))
    assert {item.example.uid: item.label for item in lesson.easy} == {
        "uid-0": "no",
        "uid-1": "yes",
    }
    plain = replace(pick, align=False)(stream, ("no", "yes"), (), RoundDraw(2, 1, 12))
    assert {item.label for item in plain.easy} == {"no"}
