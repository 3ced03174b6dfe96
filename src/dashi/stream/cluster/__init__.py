"""Chains of stages over the ranks of a cluster, by MPI (the extra `cluster`): the semantics of one machine, with ranks
that may be lost."""

from __future__ import annotations

from dashi.stream.cluster.engine import ChainRun, run_chain
from dashi.stream.cluster.launch import launch_ranks
from dashi.stream.cluster.nodes import has_nodes, job_rank, node_stages, require_ranks_fit, run_nodes
from dashi.stream.cluster.stage import CallableStage, RankStage

__all__ = [
    "CallableStage",
    "ChainRun",
    "RankStage",
    "has_nodes",
    "job_rank",
    "launch_ranks",
    "node_stages",
    "require_ranks_fit",
    "run_chain",
    "run_nodes",
]
