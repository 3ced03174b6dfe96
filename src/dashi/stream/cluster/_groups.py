"""Which rank runs which stages: at the start, and when ranks are lost. Stages of a rank are neighbours in the chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from dashi.errors import InputError
from dashi.stream.cluster.stage import RankStage

COORDINATOR = 0
"""The rank that has the source and the sink."""


@dataclass(frozen=True)
class RankGroup:
    """Neighbouring stages, and the rank that runs them."""

    rank: int
    stages: tuple[str, ...]


@dataclass(frozen=True)
class RankMove:
    """Stages that another rank took over, and why it was that one."""

    stages: tuple[str, ...]
    lost: int
    rank: int
    reason: str


def first_groups(stages: Sequence[RankStage], size: int, nodes: Mapping[str, int]) -> list[RankGroup]:
    """The groups that a run begins with. Neighbours of one node share a rank; a stage that names none has a rank of
    its own where there are enough, else joins its neighbour. Raises InputError where ranks or nodes are missing."""
    runs = _runs_of_nodes(stages)
    workers = size - 1
    if workers < 1:
        raise InputError(
            f"a chain over machines has {size} rank; one has the source and the sink, and others the stages.",
            "start at least 2 ranks: mpiexec -n 2 ... (one more for each node).",
        )
    while len(runs) > workers:
        runs = _join_smallest(runs, workers)
    ranks = _ranks_of_runs([node for node, _ in runs], nodes, size)
    return [RankGroup(rank, tuple(ids)) for rank, (_, ids) in zip(ranks, runs, strict=True)]


def _runs_of_nodes(stages: Sequence[RankStage]) -> list[tuple[str | None, list[str]]]:
    runs: list[tuple[str | None, list[str]]] = []
    for stage in stages:
        if runs and stage.node is not None and runs[-1][0] == stage.node:
            runs[-1][1].append(stage.id)
        else:
            runs.append((stage.node, [stage.id]))
    return runs


def _join_smallest(runs: list[tuple[str | None, list[str]]], workers: int) -> list[tuple[str | None, list[str]]]:
    """The runs with the two neighbours joined that have the fewest stages and no two nodes."""
    joinable = [
        (len(runs[i][1]) + len(runs[i + 1][1]), i)
        for i in range(len(runs) - 1)
        if runs[i][0] is None or runs[i + 1][0] is None
    ]
    if not joinable:
        raise InputError(
            f"the stages name {len(runs)} nodes in turn, and {workers} ranks can run them.",
            f"start {len(runs) + 1} ranks, one for each node and one for the source and the sink.",
        )
    _, i = min(joinable)
    joined = (runs[i][0] or runs[i + 1][0], runs[i][1] + runs[i + 1][1])
    return [*runs[:i], joined, *runs[i + 2 :]]


def _ranks_of_runs(names: Sequence[str | None], nodes: Mapping[str, int], size: int) -> list[int]:
    bound: dict[str, int] = {}
    for name in names:
        if name is None or name not in nodes:
            continue
        rank = nodes[name]
        if not COORDINATOR < rank < size or rank in bound.values():
            raise InputError(
                f"the node {name!r} is bound to rank {rank}, and there are the ranks 1 to {size - 1} for stages, one "
                "node each.",
                "bind each node to a rank of its own.",
            )
        bound[name] = rank
    free = iter([rank for rank in range(1, size) if rank not in bound.values()])
    ranks: list[int] = []
    for name in names:
        ranks.append(bound[name] if name in bound else next(free))
        if name is not None and name not in bound and names.count(name) > 1:
            raise InputError(
                f"the node {name!r} has stages that are no neighbours.", "give it neighbouring stages, or two names."
            )
    return ranks


def regrouped(
    groups: Sequence[RankGroup], lost: Set[int], spares: Sequence[int], fixed: Set[str]
) -> tuple[list[RankGroup], list[RankMove]]:
    """The groups without the ranks that were lost: a spare takes a group as it is, the one with the smallest number
    first; without one the neighbour with fewer stages does. `fixed` are stages that may not move: where they were
    lost, the chain ends with an InputError."""
    spare_ranks = [rank for rank in spares if rank not in lost]
    moves: list[RankMove] = []
    result: list[RankGroup] = []
    for group in groups:
        if group.rank not in lost:
            result.append(group)
            continue
        for stage in group.stages:
            if stage in fixed:
                raise InputError(
                    f"rank {group.rank} was lost, and its stage {stage!r} may not move.",
                    "let it be migratable, or start the chain again.",
                )
        if spare_ranks:
            rank = spare_ranks.pop(0)
            moves.append(RankMove(group.stages, group.rank, rank, "the spare with the smallest number"))
            result.append(RankGroup(rank, group.stages))
        else:
            result.append(group)
    while any(group.rank in lost for group in result):
        result = _given_to_neighbour(result, lost, moves)
    return result, moves


def _given_to_neighbour(groups: list[RankGroup], lost: Set[int], moves: list[RankMove]) -> list[RankGroup]:
    alive = [i for i, group in enumerate(groups) if group.rank not in lost]
    if not alive:
        raise InputError("every rank that ran stages was lost.", "start the chain again, with spare ranks.")
    dead = next(i for i, group in enumerate(groups) if group.rank in lost and (i - 1 in alive or i + 1 in alive))
    neighbours = [i for i in (dead - 1, dead + 1) if i in alive]
    heir = min(neighbours, key=lambda i: (len(groups[i].stages), i))
    first, second = sorted((dead, heir))
    moves.append(
        RankMove(groups[dead].stages, groups[dead].rank, groups[heir].rank, "no spare: the neighbour with fewer stages")
    )
    joined = RankGroup(groups[heir].rank, groups[first].stages + groups[second].stages)
    return [*groups[:first], joined, *groups[second + 1 :]]
