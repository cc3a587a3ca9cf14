"""``selftrain publish``: a run in object storage."""

from __future__ import annotations

from typing import Annotated

import typer

from selftrain.cli import options
from selftrain.cli.bundles import with_options
from selftrain.cli.talk import Watch, say, warn


@with_options
def publish(
    *,
    run: options.RunFolder,
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="Where it goes: s3://BUCKET/PREFIX."),
    ],
) -> None:
    """Copy a run folder to object storage, without texts; only what is missing there.

    selftrain publish run s3://bucket/reviews

    Nothing is written over: a file that is there with other content is an error. A round is there
    when its round.json is. Give the command again after an interruption.
    """
    from selftrain.runs.publish import Store, publish
    from selftrain.runs.read import caveats, read_manifest

    store = Store.at(address)
    read_manifest(run)
    with Watch() as watch, watch.busy("publishing"):
        copied = publish(run, store)
    warn(caveats(run))
    say(f"published: {address}, {copied} files copied" if copied else f"complete: {address}")
