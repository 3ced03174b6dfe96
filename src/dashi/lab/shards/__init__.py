"""Shards: parts of a job in folders of their own, and what makes the whole of them again. `merging` is for users;
`comparison` says what of a folder is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.lab.shards import comparison as comparison
    from dashi.lab.shards import fit_data as fit_data
    from dashi.lab.shards import local_jobs as local_jobs
    from dashi.lab.shards import merging as merging
    from dashi.lab.shards import shard as shard

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(
        __name__, {}, more=("comparison", "fit_data", "local_jobs", "merging", "shard")
    )
