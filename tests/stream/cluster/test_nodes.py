"""Plans over nodes: the hashes and the observations of one process, and what a job must have."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.stream.cluster.simulated_network import Network, SimulatedTransport
from tests.stream.cluster.test_chain import Simulation

from dashi import stream
from dashi.errors import FeatureError, InputError, StageFailedError, StreamError
from dashi.stream.cluster import launch_ranks, run_nodes
from dashi.stream.cluster._coordinator import ChainSettings
from dashi.stream.cluster.nodes import _item_bytes, _on_the_host, _Sink, _windows, node_stages, predicted_period
from dashi.stream.running import drawn_payloads

TEXT = """
window: 2
stages:
  - {{id: first, device: cpu, {near} max_semantic_depth: 1, ops: [scale]}}
  - {{id: second, device: cpu, {near} max_semantic_depth: 1, ops: [square, size]}}
  - {{id: third, device: cpu, {far} max_semantic_depth: 2, ops: [neg, most]}}
links: [{{from: first, to: second, seconds: 0.001}}, {{from: second, to: third, {mode} seconds: 0.002}}]
ops:
  scale: {{inputs: {{x: z}}, params: {{a: 2}}, outputs: {{result: z}}, depth_out: 1, seconds: 0.004}}
  square: {{inputs: {{x: z}}, outputs: {{result: z}}, seconds: 0.003}}
  size: {{kernel: reduce_sum, inputs: {{x: z}}, outputs: {{result: size}}, seconds: 0}}
  neg: {{inputs: {{x: z}}, outputs: {{result: z}}, depth_out: 2, seconds: 0.005}}
  most: {{kernel: reduce_max, inputs: {{x: z}}, outputs: {{result: most}}, seconds: 0}}
observers: {{size: {{every: 3}}, most: {{every: 4}}}}
source: {{fields: {{z: {{shape: [4]}}}}, items: 12}}
"""


@pytest.fixture(autouse=True)
def engine_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans over nodes are made where mpi4py can be found; here simulated ranks stand in."""
    monkeypatch.setattr("dashi.stream.planning.find_spec", lambda name: name)


def plan_of(near: str = "", far: str = "") -> stream.StreamPlan:
    nodes = "nodes: [a, b]\n" if near else ""
    text = TEXT.format(
        near=f"node: {near}," if near else "", far=f"node: {far}," if far else "", mode="mode: TCP," if far else ""
    )
    return stream.make_plan(stream.parse(nodes + text), measure=False)


def over_nodes(plan: stream.StreamPlan, size: int, kills: dict[int, int], seed: int = 0) -> stream.StreamRun:
    """The plan over simulated ranks."""
    sink = _Sink(False, None)
    stages = [node_stages(plan) for _ in range(size)]
    settings = ChainSettings(tuple(_windows(plan, stages[0])), 4, _item_bytes(plan))
    simulation = Simulation(size, stages, 0, seed, settings, _on_the_host(drawn_payloads(plan, 12)), sink.take)
    try:
        simulation.run(kills)
        assert len(simulation.coordinator.losses) == len(kills)
        return sink.run(plan, 1.0, None)
    finally:
        for worker in simulation.workers.values():
            worker.close()


@pytest.mark.parametrize("kills", [{}, {60: 1}, {90: 2}])
def test_observers_of_nodes_find_what_those_of_one_process_find_whoever_dies(kills: dict[int, int]) -> None:
    alone, apart = stream.run(plan_of()), over_nodes(plan_of("a", "b"), 4, kills)
    assert apart.hashes == alone.hashes
    assert apart.in_order
    for stage, steps in (("second", [0, 3, 6, 9]), ("third", [0, 4, 8])):
        found, expected = ([one.as_json() for one in run.observations if one.stage == stage] for run in (apart, alone))
        assert [one["step"] for one in found] == steps
        assert found == expected


def test_r1_is_checked_again_for_every_state_of_a_node() -> None:
    plan = plan_of("a", "b")
    stages = [*plan.stages[:2], replace(plan.stages[2], depth_in=5)]
    with pytest.raises(
        StageFailedError, match=r"the stage 'third' on rank 2 .* has depth 5 and was sent to the weaker"
    ):
        over_nodes(replace(plan, stages=tuple(stages)), 3, {})


def test_stages_of_a_node_run_one_after_another_and_the_predicted_period_says_so() -> None:
    plan = plan_of("a", "b")
    assert plan.prediction.period == pytest.approx(0.005)
    assert predicted_period(plan, node_stages(plan)) == pytest.approx(0.008)


@pytest.mark.parametrize("ranks", [1, 0, -3, 65])
def test_ranks_are_two_or_more_and_not_very_many(ranks: int) -> None:
    with pytest.raises(InputError, match=rf"`ranks={ranks}` cannot be started\. Fix: pass 2 to 64\."):
        launch_ranks(ranks, ["chain.py"])


def test_ranks_need_mpiexec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FeatureError, match=r"there is no mpiexec, which starts ranks\. Fix: .*cluster"):
        launch_ranks(2, ["chain.py"])


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (1, r"a chain over machines has 1 rank; .* Fix: start at least 2 ranks"),
        (2, r"the stages name 2 nodes in turn, and 1 ranks can run them\. Fix: start 3 ranks"),
    ],
)
def test_a_job_has_a_rank_for_each_node_and_one_more(size: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_nodes(plan_of("a", "b"), transport=SimulatedTransport(Network(size, 0), 0))


def test_a_plan_over_nodes_needs_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        StreamError, match=r"lie on 2 nodes, and this process is no rank of a job\. Fix: start mpiexec -n 3"
    ):
        run_nodes(plan_of("a", "b"))


def test_links_between_nodes_have_no_codecs() -> None:
    plan = plan_of("a", "b")
    within, between = plan.links
    coded = replace(plan, links=(within, replace(between, link=replace(between.link, codec="f16"))))
    message = (
        r"link second->third joins two nodes, and links between nodes do not have the codec 'f16'\. Fix: take `codec`"
    )
    with pytest.raises(StreamError, match=message):
        run_nodes(coded, transport=SimulatedTransport(Network(3, 0), 0))
