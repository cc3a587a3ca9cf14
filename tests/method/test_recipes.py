"""Each named method differs from its neighbour only where it claims to."""

from __future__ import annotations

import pytest

from methods import differences
from selftrain.errors import ConfigError
from selftrain.method.losses import PHCE, CrossEntropy, Smooth, Soft
from selftrain.method.recipes import BASES, DEFAULT, RECIPES, recipe
from selftrain.method.selection import Certain, LowVariance, Selection, Uniform
from selftrain.method.spec import TAPT, digest
from selftrain.method.systems import with_all_labels
from selftrain.method.upet import ABLATIONS, LAPTOP, PAPER, upet
from selftrain.model.pel import Adapter, Full

PRESETS = pytest.mark.parametrize("preset", ["laptop", "paper"])
READERS = pytest.mark.parametrize("reader", ["head", "prompt"])


# ── on the recipe ────────────────────────────────────────────────────────────────────────────


MODULE = {"student.0.tuning", "student.0.learning_rate"}
HEAD_RATE = {"student.0.head_learning_rate"}
TEACHER = {"teacher.tuning", "teacher.learning_rate"}
ALL_ROWS = {"passes", "select.label", "select.score", "select.shares"}
LAPTOPS_DRAW = {"select.hard", "select.how"}  # of what else, a system that takes all has no use
NEIGHBOURS: list[tuple[str, str, set[str], set[str], set[str]]] = [
    # one, the other, and where they differ: always, under `laptop` too, under `paper` too
    ("{}-ft", "upet-{}-adapter", {"rounds", "student"}, set(), set()),
    (
        "{}-st",
        "upet-{}-full",
        ALL_ROWS | {"student.0.contrast", "student.0.loss"},
        LAPTOPS_DRAW,
        {"select.count"},
    ),
    ("upet-{}-full", "upet-{}-adapter", MODULE, HEAD_RATE, set()),
    ("upet-{}-prefix", "upet-{}-adapter", MODULE | HEAD_RATE, set(), set()),
    ("upet-{}-ptuning", "upet-{}-adapter", MODULE | HEAD_RATE, set(), set()),
    ("upet-{}-ptuning", "upet-{}-prefix", {"student.0.tuning"}, {"student.0.learning_rate"}, set()),
    ("upet-{}-adapter-pel-teacher", "upet-{}-adapter", TEACHER, set(), set()),
    ("upet-{}-full-pel-teacher", "upet-{}-full", TEACHER, set(), set()),
]

# Adapters have a dense head or tune the LM head; prefix and P-tuning do neither.
READERS_OF_THE_PAPER = {
    ("upet-{}-prefix", "upet-{}-adapter", "head"): {"teacher.head", "student.0.head"},
    ("upet-{}-ptuning", "upet-{}-adapter", "head"): {"teacher.head", "student.0.head"},
    ("upet-{}-prefix", "upet-{}-adapter", "prompt"): {"student.0.lm_head"},
    ("upet-{}-ptuning", "upet-{}-adapter", "prompt"): {"student.0.lm_head"},
    ("upet-{}-full", "upet-{}-adapter", "prompt"): {"student.0.lm_head"},
    ("upet-{}-adapter-pel-teacher", "upet-{}-adapter", "prompt"): {"teacher.lm_head"},
    ("upet-{}-full-pel-teacher", "upet-{}-full", "prompt"): {"teacher.lm_head"},
}


@PRESETS
@READERS
@pytest.mark.parametrize(("one", "other", "always", "laptop", "paper"), NEIGHBOURS)
def test_neighbours_differ_only_where_they_claim_to(
    one, other, always, laptop, paper, reader, preset
):
    expected = always | (laptop if preset == "laptop" else paper)
    if preset == "paper":
        expected = expected | READERS_OF_THE_PAPER.get((one, other, reader), set())
    pair = (recipe(name.format(reader), preset) for name in (one, other))
    assert differences(*pair) == expected


@PRESETS
def test_head_and_prompt_differ_in_how_they_read_alone(preset):
    def places(ways: set[str]) -> tuple[set[str], set[str]]:
        return tuple({f"{whose}.{way}" for way in ways} for whose in ("teacher", "student.0"))

    linear = {"reader"} | ({"head_start"} if preset == "laptop" else set())
    dense = linear | ({"head"} if preset == "paper" else set())
    teacher, student = places(dense)
    assert differences(recipe("prompt-ft", preset), recipe("head-ft", preset)) == teacher
    assert differences(recipe("prompt-st", preset), recipe("head-st", preset)) == teacher | student
    for module in ("adapter", "prefix", "ptuning"):
        pair = (recipe(f"upet-{reader}-{module}", preset) for reader in ("prompt", "head"))
        teacher, student = places(dense if module == "adapter" else linear)
        tuned = {"student.0.lm_head"} if (module, preset) == ("adapter", "paper") else set()
        assert differences(*pair) == teacher | student | tuned


@PRESETS
def test_list_differs_from_upet_with_adapters_in_both_where_it_says(preset):
    drawn = LAPTOPS_DRAW if preset == "laptop" else {"select.count"}
    pair = (recipe(name, preset) for name in ("list", "upet-prompt-adapter-pel-teacher"))
    tuned = {"teacher.lm_head"} if preset == "laptop" else set()  # in `paper` by UPET's too
    assert differences(*pair) == ALL_ROWS | drawn | {"student"} | tuned


@PRESETS
@READERS
def test_self_training_takes_all_of_the_pool_by_hard_labels_with_all_parameters(reader, preset):
    st = recipe(f"{reader}-st", preset)
    assert st.select == Selection(score=Uniform(), count=None, shares=(1.0,), label="deterministic")
    (student,) = st.student
    assert (student.tuning, student.loss, student.contrast) == (Full(), CrossEntropy(), None)
    assert st.teacher == upet(reader, "adapter", preset).teacher


@PRESETS
def test_ust_differs_from_upet_with_all_parameters_where_it_says(preset):
    assert differences(recipe("ust", preset), recipe("upet-head-full", preset)) <= {
        "student.0.loss",
        "student.0.contrast",
        "student.0.gold_share",
        "student.0.head_start",
        "student.0.starts_from",
        "select.label",
        "select.score",
        "select.weigh",
        "select.how",
        "select.per_class",
    }
    select, (student,) = recipe("ust", preset).select, recipe("ust", preset).student
    assert (select.score, select.how, select.per_class) == (Certain(), "sample", "equal")
    assert select.label == "deterministic"
    assert select.weigh == LowVariance(0.1)
    assert (student.starts_from, student.gold_share) == ("teacher", 0)
    assert (student.loss, student.contrast) == (CrossEntropy(), None)


@PRESETS
def test_ust_hard_differs_from_ust_in_the_score_alone(preset):
    assert differences(recipe("ust-hard", preset), recipe("ust", preset)) == {"select.score.invert"}


@PRESETS
def test_cest_is_certainty_phce_and_neighbours(preset):
    there = {"student.0.contrast", "student.0.smooth", "select.score", "select.how"}
    there -= {"select.how"} if preset == "paper" else set()  # which draws by weight itself
    assert differences(recipe("cest", preset), recipe("upet-head-full", preset)) == there
    select, (student,) = recipe("cest", preset).select, recipe("cest", preset).student
    assert (select.score, select.how) == (Certain(), "sample")
    assert (student.loss, student.smooth) == (PHCE(tau=10), Smooth(neighbours=2))


@PRESETS
def test_tapt_differs_from_fine_tuning_in_what_comes_before(preset):
    assert differences(recipe("tapt-head-ft", preset), recipe("head-ft", preset)) == {"tapt"}
    assert recipe("tapt-head-ft", preset).tapt == TAPT()


@PRESETS
@READERS
def test_fine_tuning_with_all_labels_differs_in_how_long_it_learns(reader, preset):
    few = recipe(f"{reader}-ft", preset)
    whole = with_all_labels(few)
    assert differences(whole, few) == {"teacher.batch_size", "teacher.epochs"} | (
        {"teacher.steps"} if preset == "laptop" else set()
    )
    assert (whole.teacher.epochs, whole.teacher.steps, whole.teacher.batch_size) == (3, None, 32)


@PRESETS
def test_list_tunes_adapters_and_the_mlm_head_in_every_stage(preset):
    method = recipe("list", preset)
    stages = (method.teacher, *method.student)
    assert {type(how.tuning) for how in stages} == {Adapter}
    assert {how.lm_head for how in stages} == {"tuned"}
    assert {how.reader for how in stages} == {"prompt"}
    soft, gold = method.student
    assert (soft.loss, soft.gold_share, gold.loss, gold.train_on) == (
        Soft(),
        0,
        CrossEntropy(),
        "gold",
    )
    assert soft.reweigh is not None
    assert soft.reweigh.after == 0.6


@PRESETS
def test_every_method_has_the_same_pool_rounds_and_steps(preset):
    base = upet("head", "adapter", preset)
    for name in BASES:
        if name in ("supcon", "frozen"):  # ours: they draw fewer rows, and have one student or none
            continue
        method = recipe(name, preset)
        assert method.pool == base.pool, name
        if method.rounds:
            assert method.rounds == base.rounds, name
            if base.student[0].steps:
                assert sum(how.steps for how in method.student) == base.student[0].steps, name


def test_the_contrast_of_the_default_belongs_to_the_laptop():
    """It was measured on MiniLM: another preset keeps its own teacher, and the default's rounds."""
    laptop, paper = recipe(DEFAULT, "laptop"), recipe(DEFAULT, "paper")
    assert laptop.teacher.supcon is not None
    assert laptop.teacher.class_names
    assert paper.teacher == recipe("probe", "paper").teacher
    assert (paper.rounds, paper.probe, paper.guard) == (laptop.rounds, laptop.probe, laptop.guard)


def test_published_sizes_belong_to_the_baselines_alone():
    each_tune = ("head", "dropout", "learning_rate", "epochs", "batch_size")
    assert differences(recipe("ust", "published"), recipe("ust", "paper")) == {
        *(f"{whose}.{entry}" for whose in ("teacher", "student.0") for entry in each_tune),
        "rounds",
        "passes",
        "pool",
        "select.count",
        "converged",
    }
    assert differences(recipe("list", "published"), recipe("list", "paper")) == {
        "rounds",
        "converged",
    }
    for name in BASES:
        if name not in ("ust", "ust-hard", "list"):
            assert recipe(name, "published") == recipe(name, "paper")


def test_published_ust_has_the_sizes_of_its_code():
    """The defaults of ``train_model`` in microsoft/UST, ust.py."""
    method = recipe("ust", "published")
    assert (method.rounds, method.passes, method.pool, method.select.count) == (25, 30, 16384, 4096)
    assert (method.teacher.epochs, method.teacher.batch_size) == (70, 4)
    (student,) = method.student
    assert (student.epochs, student.batch_size) == (25, 32)
    for tune in (method.teacher, student):
        assert (tune.head, tune.dropout, tune.learning_rate) == ("linear", 0.3, 3e-5)
    assert method.select.label == "deterministic"


@pytest.mark.parametrize(
    ("part", "places"),
    [
        ("res-all", {"select.score", "select.shares", "student.0.contrast"}),
        ("res-uniform", {"select.score", "select.how", "select.hard"}),
        ("certainty", {"select.score.alpha"}),
        ("confidence", {"select.score.alpha"}),
        ("phce", {"student.0.loss"}),
        ("contrast", {"student.0.contrast"}),
    ],
)
@PRESETS
@READERS
def test_an_ablation_differs_from_upet_in_its_part_alone(part, places, reader, preset):
    name = f"upet-{reader}-ptuning"
    changed, whole = recipe(f"{name}-wo-{part}", preset), recipe(name, preset)
    if preset == "paper":  # it draws a number by weight, and what is not drawn is hard
        count = {"select.count"} if part == "res-all" else set()
        places = (places | count) - {"select.how", "select.hard"}
    assert differences(changed, whole) == places
    assert changed.name == f"{name}-wo-{part}"


def test_all_ablations_are_tested_above():
    assert {each.part for each in ABLATIONS} == {
        "res-all",
        "res-uniform",
        "certainty",
        "confidence",
        "phce",
        "contrast",
    }


@PRESETS
@READERS
def test_teacher_and_student_choose_their_tuning_independently(reader, preset):
    """Table 2: a module or all parameters, in the teacher and in the student."""
    names = ["full", "adapter", "full-pel-teacher", "adapter-pel-teacher"]
    kinds = [
        (type(method.teacher.tuning), type(method.student[0].tuning))
        for method in (recipe(f"upet-{reader}-{name}", preset) for name in names)
    ]
    assert kinds == [(Full, Full), (Full, Adapter), (Adapter, Full), (Adapter, Adapter)]


def test_the_presets_hold_what_the_default_names_say():
    for preset, base in (("laptop", LAPTOP), ("paper", PAPER)):
        assert recipe("upet-head-adapter", preset) == base


def test_alpha_scale_and_draw_may_be_named():
    base = recipe("upet-prompt-ptuning")
    changed = recipe("upet-prompt-ptuning-alpha-0.8-rank-sample")
    assert differences(changed, base) == {"select.score.alpha", "select.score.scale", "select.how"}
    assert recipe("upet-prompt-ptuning-alpha-0.4-raw-topk").select == base.select


@pytest.mark.parametrize("alpha", ["0", "1"])
def test_of_one_part_alone_the_largest_are_one_recipe_on_either_scale(alpha):
    """The bench computes a recipe once; where rows are drawn or both parts count, there are two."""
    raw, rank = (f"upet-head-adapter-alpha-{alpha}-{scale}" for scale in ("raw", "rank"))
    assert digest(recipe(f"{rank}-topk")) == digest(recipe(f"{raw}-topk"))
    assert recipe(f"{rank}-topk").name == f"{rank}-topk"
    assert digest(recipe(f"{rank}-sample")) != digest(recipe(f"{raw}-sample"))
    both = (recipe(f"upet-head-adapter-alpha-0.2-{scale}-topk") for scale in ("raw", "rank"))
    assert len(set(map(digest, both))) == 2


@pytest.mark.parametrize(
    "name",
    [
        "upet-head-adapter-wo-sleep",
        "ust-wo-phce",
        "uts",
        "",
        "upet-head-adapter-alpha-2-raw-topk",
        "upet-head-adapter-alpha-0.3-raw-topk",
        "upet-head-adapter-alpha-0.2-raw",
        "upet-alpha-0.2-raw-topk",
    ],
)
def test_a_name_nobody_knows_is_named_with_those_there_are(name):
    with pytest.raises(ConfigError, match="there is no method") as caught:
        recipe(name)
    assert "one of" in caught.value.hint


def test_the_fields_of_a_recipe_say_what_it_builds():
    """Tables read the fields; a run is made by what is built."""
    for name, known in RECIPES.items():
        method = known.build("laptop")
        first = (*method.student, method.teacher)[0]
        assert known.name == method.name == name
        assert {tune.reader for tune in (method.teacher, *method.student)} == {known.reader}
        assert (method.teacher.tuning.kind, first.tuning.kind) == (
            known.teacher_tuning,
            known.tuning,
        )
        assert (known.base in BASES) == bool(known.ablation or known.weighing)


def test_a_variant_names_its_base_and_what_it_changes():
    without = RECIPES["upet-prompt-full-pel-teacher-wo-phce"]
    assert without.base == "upet-prompt-full-pel-teacher"
    assert (without.reader, without.ablation.part, without.weighing) == ("prompt", "phce", None)
    weighed = RECIPES["upet-head-adapter-alpha-0.2-rank-topk"].weighing
    assert (weighed.alpha, weighed.scale, weighed.how) == (0.2, "rank", "topk")


def test_an_alpha_that_no_recipe_has_is_an_entry_of_a_config_file():
    with pytest.raises(ConfigError) as caught:
        recipe("upet-head-adapter-alpha-0.3-raw-topk")
    assert "method.select.score.alpha = 0.3" in caught.value.hint
