"""``selftrain methods``, ``check`` and ``doctor``: what can be used, and whether it would work."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from selftrain.cli import options
from selftrain.cli.bundles import with_options
from selftrain.cli.talk import Watch, say, show, show_json
from selftrain.errors import ConfigError


def methods(
    preset: Annotated[str, typer.Option(metavar="NAME", help="laptop or paper.")] = "laptop",
    as_json: options.Json = False,
) -> None:
    """The methods there are, and what each one does.

    selftrain methods

    With --json every entry of every method, as a --config file names them.
    """
    with Watch() as watch, watch.busy("loading"):
        from selftrain.method.recipes import BASES, recipe
        from selftrain.method.spec import to_plain
        from selftrain.method.upet import ABLATIONS

        every = [recipe(name, preset) for name in BASES]
    if as_json:
        show_json([to_plain(each, whole=True) for each in every])
        return
    head = ("method", "reader", "teacher", "student", "rounds", "pool", "passes")
    rows = [
        (
            each.name,
            each.teacher.reader,
            each.teacher.tuning.kind,
            ", ".join(tune.tuning.kind for tune in each.student) or "–",
            *map(str, (each.total_rounds, each.pool, each.passes)),
        )
        for each in every
    ]
    show(head, rows)
    say("cest is a reconstruction: its graph formula was not at hand")
    parts = ", ".join(ablation.part for ablation in ABLATIONS)
    say(f"a upet name may end on -alpha-0.2-rank-topk, or on -wo- and one of: {parts}")


@with_options
def check(
    prompt: options.PromptOptions,
    backbone: Annotated[
        str,
        typer.Option(metavar="NAME", help="minilm-mlm, a folder, or a name on the hub."),
    ] = "minilm-mlm",
    as_json: options.Json = False,
) -> None:
    """Check template and label words against a backbone, before any training.

    selftrain check --task sst2

    selftrain check --template "{text} It was {mask} ." --word bad=terrible --word good=great
    """
    from selftrain.data.task import find, from_labels
    from selftrain.method.changes import given

    words = prompt.words()
    if prompt.task is None and not words:
        raise ConfigError(
            "there is nothing to check: neither a task nor label words", "--task sst2"
        )
    pair = "{a}" in (prompt.template or "")
    start = from_labels(words, pair=pair) if prompt.task is None else find(prompt.task)
    task = start.changed(given({"template": prompt.template, "words": words or None}))
    with Watch() as watch, watch.busy("loading"):
        from selftrain.model.architecture import Architecture
        from selftrain.model.backbone import load
        from selftrain.model.build import build
        from selftrain.model.pel import Adapter
        from selftrain.model.prompt import check as check_words

        loaded = load(backbone)
        verdicts = check_words(task, loaded)
    if as_json:
        show_json([{**asdict(each), "ok": each.ok} for each in verdicts])
    else:
        rows = [
            (each.label, each.word, " ".join(each.pieces), each.problem or "ok")
            for each in verdicts
        ]
        show(("class", "word", "tokens", "verdict"), rows)
    # Every training does the same: it raises for what the table shows, or for a missing MLM head.
    build(task, loaded, Architecture(Adapter(width=1), "prompt"), seed=0)


def doctor(as_json: options.Json = False) -> None:
    """Versions, device, threads, what is cached: what a bug report needs.

    selftrain doctor
    """
    with Watch() as watch, watch.busy("looking"):
        from selftrain.cli.doctor import facts

        machine = facts()
    if as_json:
        show_json(machine)
    else:
        show(("selftrain doctor", ""), list(machine.items()))
