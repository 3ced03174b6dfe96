"""Which part of a job is asked for."""

from __future__ import annotations

from dashi.io._shards import Shard

__all__ = ["Shard"]
