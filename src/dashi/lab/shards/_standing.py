"""What a shard says of itself when its command runs again, and what it cannot do without."""

from __future__ import annotations

from pathlib import Path

from dashi.errors import InputError
from dashi.io._shards import Shard
from dashi.lab.events import Events


def remark_finished(shard: Shard, out: Path, events: Events) -> None:
    """Says that nothing is left to do."""
    events.remark(f"shard {shard} in {out} is finished already: nothing is done")


def require_folder(shard: Shard, out: Path | None) -> Path:
    """The folder of a shard, which it cannot do without."""
    if out is None:
        raise InputError(f"`shard={shard}` leaves a folder to merge.", "name it with `out=`.")
    return out
