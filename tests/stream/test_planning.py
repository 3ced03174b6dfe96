"""Plans: the rules, each with op, device and fix; what travels; what it will take; assignments that are searched."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi.core import Linear
from dashi.errors import InputError, StreamConfigError, StreamError, StreamRuleError
from dashi.stream import Field, PayloadSchema, StreamPlan, host_op, load, make_plan, operator_op, parse
from dashi.stream import planning as planner

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream" / "worked_example.yaml"
"""Bound to the NumPy device in these tests: nothing has to be measured, and any machine has it."""

STAGES = """\
stages:
  - {id: a, device: one, max_semantic_depth: 1, ops: [scale, square]}
  - {id: b, device: two, max_semantic_depth: 2, ops: [neg]}
links:
  - {from: a, to: b, seconds: 0.001}
devices:
  one: cpu
  two: cpu
ops:
  scale: {inputs: {x: z}, params: {a: 2}, outputs: {result: y}, depth_out: 1, seconds: 0.002}
  square: {inputs: {x: y}, outputs: {result: y}, seconds: 0.003}
  neg: {inputs: {x: y}, outputs: {result: w}, depth_out: 2, seconds: {one: 0.007, two: 0.004}}
source:
  fields:
    z: {shape: [4]}
"""


def planned(text: str, *replaced: tuple[str, str], **options: Any) -> StreamPlan:
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    return make_plan(parse(text), measure=False, **options)


def rule_error(*replaced: tuple[str, str], text: str = STAGES, **options: Any) -> StreamRuleError:
    with pytest.raises(StreamRuleError) as caught:
        planned(text, *replaced, **options)
    return caught.value


def test_a_plan_says_what_runs_where_what_travels_and_what_it_takes() -> None:
    plan = planned(STAGES, ("source:", "result: [w]\nsource:"))
    first, second = plan.stages
    assert [op.spec.id for op in first.ops] == ["scale", "square"]
    assert (first.depth_in, first.depth_out, second.depth_in, second.depth_out) == (0, 1, 1, 2)
    assert first.taken == PayloadSchema({"z": Field((4,))})
    assert first.after == second.taken == PayloadSchema({"y": Field((4,))})
    assert second.after == PayloadSchema({"w": Field((4,))})
    assert (first.seconds, second.seconds) == pytest.approx((0.005, 0.004))
    (link,) = plan.links
    assert (link.nbytes, link.seconds) == (16, 0.001)
    # 0.005 s in the first stage rule; a slot is used for 0.010 s, so two do.
    assert plan.prediction.period == pytest.approx(0.005)
    assert plan.prediction.bound_by == "stage a"
    assert plan.prediction.latency == pytest.approx(0.010)
    assert link.window == 2


def test_a_window_that_is_given_rules_where_it_is_too_narrow() -> None:
    plan = planned("window: 1\n" + STAGES)
    assert plan.prediction.period == pytest.approx(0.010)
    assert plan.prediction.bound_by == "window 1 of a->b"
    assert plan.links[0].window == 1
    wide = planned("window: 3\n" + STAGES)
    assert (wide.links[0].window, wide.prediction.period) == (3, pytest.approx(0.005))
    bounded = planned("window: 3\n" + STAGES, ("seconds: 0.001}", "seconds: 0.001, max_inflight: 1}"))
    assert bounded.links[0].window == 1


def test_a_plan_prints_and_explains_itself_and_becomes_json() -> None:
    plan = planned(
        STAGES, ("one: cpu", "one: {spec: cpu, latency_class: high}"), ("scale: {", "scale: {latency_sensitive: true, ")
    )
    text = str(plan)
    assert "stage  device     ops           depth   µs    link          µs    window" in text
    assert "period 5000 µs (bound by stage a), latency 10000 µs" in text
    lines = str(plan.explain()).splitlines()
    # A latency-sensitive op on a device of high latency is scored 10 ms worse.
    assert "scale   a      one     12000     chosen" in lines
    assert (
        "neg     a      one               R2 role: op 'neg' reaches depth 2; stage 'a' on device 'one' (cpu) goes to 1."
        in lines
    )
    assert "<table>" in plan._repr_html_()
    assert "<table>" in plan.explain()._repr_html_()
    document = json.loads(json.dumps(plan.as_json()))
    assert [stage["id"] for stage in document["stages"]] == ["a", "b"]
    assert document["predicted_period_us"] == pytest.approx(5000)


# R1


def test_r1_refuses_a_depth_that_falls() -> None:
    error = rule_error(
        ("square: {", "square: {depth_out: 1, "),
        (
            "scale: {inputs: {x: z}, params: {a: 2}, outputs: {result: y}, depth_out: 1",
            "scale: {inputs: {x: z}, params: {a: 2}, outputs: {result: y}, depth_out: 2",
        ),
        ("device: one, max_semantic_depth: 1", "device: one, max_semantic_depth: 2"),
    )
    assert (error.rule, error.op, error.device) == ("R1 monotone depth", "square", "one")
    assert "configuration:11: op 'square' on device 'one' gives depth 1 to States that have depth 2." in str(error)
    assert str(error).endswith("Fix: put it before the op that reaches depth 2, or raise its depth_out to 2.")


def test_r1_refuses_an_op_that_takes_states_of_less_depth_than_come() -> None:
    error = rule_error(
        ("neg: {", "neg: {depth_in: 1, "),
        ("square: {", "square: {depth_out: 2, "),
        ("device: one, max_semantic_depth: 1", "device: one, max_semantic_depth: 2"),
    )
    assert (error.rule, error.op, error.device) == ("R1 monotone depth", "neg", "two")
    assert "takes States of depth 1; those that come have 2" in str(error)


def test_r1_refuses_an_op_that_lowers_depth_itself() -> None:
    error = rule_error(("neg: {", "neg: {depth_in: 3, "))
    assert "op 'neg' takes States of depth 3 and gives depth 2." in str(error)


def test_r1_refuses_a_weaker_stage_behind_a_stronger() -> None:
    error = rule_error(("device: one, max_semantic_depth: 1", "device: one, max_semantic_depth: 3"))
    assert (error.rule, error.device) == ("R1 monotone depth", "two")
    assert "stage 'a' reaches depth 3 and is followed by the weaker stage 'b' on device 'two' (cpu)" in str(error)


def test_r1_refuses_a_broadcast_that_goes_back() -> None:
    error = rule_error(("source:", "broadcast: {after: neg, to: [a]}\nsource:"))
    assert (error.rule, error.op) == ("R1 monotone depth", "neg")
    assert "are broadcast to stage 'a', which does not come after it" in str(error)


# R2


def test_r2_refuses_depth_above_the_stage_or_the_device() -> None:
    error = rule_error(("outputs: {result: y}, depth_out: 1", "outputs: {result: y}, depth_out: 2"))
    assert (error.rule, error.op, error.device) == ("R2 role", "scale", "one")
    assert "op 'scale' reaches depth 2; stage 'a' on device 'one' (cpu) goes to 1." in str(error)
    error = rule_error(("two: cpu", "two: {spec: cpu, max_semantic_depth: 1}"))
    assert (error.op, error.device) == ("neg", "two")


def test_r2_refuses_features_that_the_device_lacks() -> None:
    error = rule_error(("two: cpu", "two: {spec: cpu, features: [fp16]}"), ("z: {", "z: {dtype: f64, "))
    assert (error.rule, error.op, error.device) == ("R2 role", "neg", "two")
    assert "op 'neg' needs fp64, int64; stage 'b' on device 'two' (cpu) lacks it." in str(error)


def test_r2_refuses_functions_of_the_host_elsewhere() -> None:
    op = host_op("neg", np.negative, "y", {"w": Field((4,))}, seconds=1e-3)
    assert planned(STAGES, ops={"neg": op}).stages[1].ops == (op,)
    error = rule_error(("two: cpu", "two: 'null'"), ops={"neg": op})
    assert "op 'neg' is a function of the host; stage 'b' on device 'two' (null) is no host." in str(error)


def test_r2_refuses_a_stage_that_cannot_do_what_it_is_to_offer() -> None:
    offering = ("device: two, max_semantic_depth: 2", "device: two, max_semantic_depth: 2, offers: [atomics]")
    groups = ("source:", "groups: {atomics: [scatter_add_atomic]}\nsource:")
    error = rule_error(offering, groups)
    assert (error.rule, error.op, error.device) == ("R2 role", "scatter_add_atomic", "two")
    assert "configuration:3: stage 'b' on device 'two' (cpu) is to offer the group 'atomics'" in str(error)
    assert planned("determinism_tier: 2\n" + STAGES, offering, groups)


# R3


def test_r3_refuses_an_op_above_the_tier_and_notes_it_where_it_is_allowed() -> None:
    text = STAGES.replace("ops: [neg]", "ops: [scatter_add_atomic]").replace(
        "  neg: {inputs: {x: y}, outputs: {result: w}, depth_out: 2, seconds: {one: 0.007, two: 0.004}}",
        "  scatter_add_atomic: {inputs: {base: y, values: y}, params: {index: {shape: [4], draw: ramp}}}",
    )
    error = rule_error(text=text)
    assert (error.rule, error.op, error.device) == ("R3 tier", "scatter_add_atomic", "two")
    assert "is of tier 2 (float atomics, whose bits are not repeatable); the run is declared to be of tier 1" in str(
        error
    )
    notes = planned("determinism_tier: 2\n" + text).notes
    assert "float atomics, whose bits are not repeatable: scatter_add_atomic" in notes


def test_r3_allows_one_device_at_tier_0() -> None:
    assert planned("determinism_tier: 0\n" + STAGES)
    error = rule_error(("two: cpu", "two: 'null'"), ("stages:", "determinism_tier: 0\nstages:"))
    assert (error.rule, error.device) == ("R3 tier", "two")
    assert "a run of tier 0 has one device; this one has 'one', 'two'." in str(error)


# R4


def test_r4_refuses_to_move_what_may_not_and_need_not() -> None:
    home = ("device: one, max_semantic_depth: 1", "device: one, max_semantic_depth: 2")
    error = rule_error(("neg: {", "neg: {migratable: false, "), home)
    assert (error.rule, error.op, error.device) == ("R4 residency", "neg", "two")
    assert "its State lives on device 'one' (stage 'a'), where it may run" in str(error)
    # Where R2 forbids it at home it moves all the same.
    assert planned(STAGES, ("neg: {", "neg: {migratable: false, "))


# R5


def test_r5_refuses_a_chain_that_goes_on_from_an_observer() -> None:
    error = rule_error(
        ("square: {", "square: {io_class: OBSERVER, "),
        ("outputs: {result: y}, seconds: 0.003", "outputs: {result: seen}, seconds: 0.003"),
        ("neg: {inputs: {x: y}", "neg: {inputs: {x: seen}"),
    )
    assert (error.rule, error.op, error.device) == ("R5 stream contract", "neg", "two")
    assert "reads 'seen', which the observer 'square' makes: that never travels with a State." in str(error)


def test_observers_see_what_observers_of_their_stage_made_and_count_for_their_share() -> None:
    plan = planned(
        STAGES + "observe_every: 10\n",
        ("ops: [neg]", "ops: [neg, defect_local, reduce_max]"),
        (
            "  neg:",
            (
                "  defect_local: {inputs: {a: y, b: w}, outputs: {result: d}, seconds: 0.01}\n"
                "  reduce_max: {inputs: {x: d}, seconds: 0.01}\n  neg:"
            ),
        ),
        ("source:", "result: [w]\nsource:"),
    )
    stage = plan.stages[1]
    assert [op.spec.id for op in stage.observers] == ["defect_local", "reduce_max"]
    assert stage.every == {"defect_local": 10, "reduce_max": 10}
    assert stage.seconds == pytest.approx(0.004 + 2 * 0.001)
    assert set(stage.after) == {"w"}


# What else is wrong with a chain


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        (("inputs: {x: z}", "inputs: {x: q}"), "configuration:10: op 'scale'.* reads the field 'q'"),
        (("params: {a: 2}", "params: {b: 2}"), "the kernel 'scale' has no 'b' among its params"),
        (("inputs: {x: z}", "inputs: {y: z}"), "the kernel 'scale' has no 'y' among its inputs"),
        (("outputs: {result: w}", "outputs: {out: w}"), "the kernel 'neg' has no 'out' among its outputs"),
        (("params: {a: 2}", "params: {a: [1]}"), r"configuration:10: op 'scale': a=array\(\[1\]\) is no number"),
        (("inputs: {x: z}", "inputs: {x: {field: z, shape: [3]}}"), r"'z' of shape \(4,\) cannot be seen as \(3,\)"),
        (("ops: [neg]", "ops: [nag]"), "no stage has the op 'neg'"),
        (("neg: {", "neg: {kernel: nag, "), "configuration:12: op 'neg': there is no kernel 'nag'."),
        (("z: {", "z: {dtype: u8, "), "op 'scale'"),
        (("source:", "result: [q]\nsource:"), "the result names the field 'q', which nothing makes"),
    ],
)  # fmt: skip
def test_chains_that_cannot_be_are_refused(replaced: tuple[str, str], message: str) -> None:
    with pytest.raises((StreamConfigError, InputError), match=message) as caught:
        planned(STAGES, replaced)
    assert " Fix: " in str(caught.value)


def test_memory_that_cannot_be_shared_is_refused_or_becomes_a_copy_that_is_named() -> None:
    unlike = ("two: cpu", "two: 'null'")
    asked = ("{from: a, to: b, seconds: 0.001}", "{from: a, to: b, mode: P2P, seconds: 0.001}")
    with pytest.raises(
        StreamError, match=r"configuration:5: link a->b is to be P2P between cpu and null, which cannot"
    ):
        planned(STAGES, unlike, asked)
    allowed = (asked[1], asked[1].replace("P2P", "P2P, fallback: true"))
    (link,) = planned(STAGES, unlike, asked, allowed).links
    assert link.link.mode == "HOST_STAGING"
    assert link.notes == ("HOST_STAGING instead of P2P: cpu and null share no memory",)
    assert planned(STAGES, unlike, asked, link_modes=lambda a, b: ("P2P",)).links[0].link.mode == "P2P"


def test_codecs_change_what_is_sent_and_lossy_ones_are_named() -> None:
    coded = ("to: b, seconds: 0.001}", "to: b, codec: f16, bandwidth: 1e6, latency: 1e-6}")
    (link,) = planned(STAGES, coded, ("source:", "result: [w]\nsource:")).links
    assert (link.nbytes, link.notes) == (8, ("f16 loses precision: the run's record names it",))


def test_broadcast_results_travel_to_the_stage_that_they_are_for() -> None:
    three = ("links:", "  - {id: c, device: two, max_semantic_depth: 2, ops: [abs]}\nlinks:")
    text = STAGES.replace("outputs: {result: y}, seconds: 0.003", "outputs: {result: s}, seconds: 0.003").replace(
        "x: y}, outputs: {result: w}", "x: s}, outputs: {result: w}"
    )
    more = ("source:", "  abs: {inputs: {x: w}}\nresult: [abs]\nsource:")
    assert [set(link.schema) for link in planned(text, three, more).links] == [{"s"}, {"w"}]
    sent = (more[1], more[1].replace("source:", "broadcast: {after: scale, to: [c]}\nsource:"))
    assert [set(link.schema) for link in planned(text, three, more, sent).links] == [{"s", "y"}, {"w", "y"}]


def test_stages_on_several_nodes_need_the_engine_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    config = parse(STAGES.replace("id: b,", "id: b, node: right,").replace("to: b,", "to: b, mode: TCP,"))
    monkeypatch.setattr(planner, "find_spec", lambda name: None)
    with pytest.raises(StreamError, match=r"mpi4py, is not installed\. Fix: install the extra `cluster`"):
        make_plan(config, measure=False)
    monkeypatch.setattr(planner, "find_spec", lambda name: True)
    assert make_plan(config, measure=False).links[0].link.mode == "TCP"


def test_an_unknown_device_is_named_with_those_that_there_are() -> None:
    with pytest.raises(dashi.errors.DeviceNotFoundError, match=r"there is no device 'vulkan:99'; there are: .*cpu"):
        planned(STAGES, ("two: cpu", "two: vulkan:99"))


# Searched assignments

SEARCH = """\
chain: [scale, square, neg, abs]
stages:
  - {id: a, device: one, max_semantic_depth: 2}
  - {id: b, device: two, max_semantic_depth: 2}
links:
  - {from: a, to: b, seconds: 0.001}
devices: {one: cpu, two: cpu}
ops:
  scale: {inputs: {x: z}, params: {a: 2}, outputs: {result: z}, seconds: 0.004}
  square: {inputs: {x: z}, outputs: {result: z}, seconds: 0.002}
  neg: {inputs: {x: z}, outputs: {result: z}, seconds: 0.003}
  abs: {inputs: {x: z}, outputs: {result: z}, seconds: {one: 0.009, two: 0.003}}
source:
  fields:
    z: {shape: [4]}
"""


def placed(plan: StreamPlan) -> list[list[str]]:
    return [[op.spec.id for op in stage.ops] for stage in plan.stages]


def test_a_chain_is_assigned_to_the_least_period() -> None:
    plan = planned(SEARCH)
    assert placed(plan) == [["scale", "square"], ["neg", "abs"]]
    assert plan.prediction.period == pytest.approx(0.006)


def test_the_least_latency_leaves_out_what_it_does_not_need() -> None:
    plan = planned("objective: latency\n" + SEARCH)
    assert placed(plan) == [["scale", "square", "neg", "abs"]]
    assert [stage.stage.id for stage in plan.stages] == ["b"]
    assert plan.notes == ("stage a is left out: no op is better off there",)
    assert plan.links == ()


def test_throughput_under_a_latency_that_cannot_be_is_refused() -> None:
    text = "objective: throughput_under_latency\nlatency_limit: 0.013\n" + SEARCH
    assert planned(text).prediction.period == pytest.approx(0.006)
    with pytest.raises(StreamError, match=r"no assignment has a latency within 0.011 s; the least is 0.012 s"):
        planned(text.replace("0.013", "0.011"))


def test_pins_and_what_may_not_migrate_are_held_to() -> None:
    assert placed(planned(SEARCH, ("neg: {", "neg: {stage: a, "))) == [["scale", "square", "neg"], ["abs"]]
    # 8 ms with neg beside square behind, 9 ms with both in front.
    assert placed(planned(SEARCH, ("neg: {", "neg: {migratable: false, "))) == [["scale"], ["square", "neg", "abs"]]


def test_observers_stay_with_what_they_look_at() -> None:
    plan = planned(
        SEARCH,
        ("neg, abs]", "neg, abs, defect_local, reduce_max]"),
        (
            "  abs:",
            (
                "  defect_local: {inputs: {a: z, b: z}, outputs: {result: d}, seconds: 0}\n"
                "  reduce_max: {inputs: {x: d}, seconds: 0}\n  abs:"
            ),
        ),
    )
    assert [op.spec.id for op in plan.stages[-1].observers] == ["defect_local", "reduce_max"]


def test_a_chain_that_no_stage_can_run_is_refused_with_the_rule() -> None:
    error = rule_error(("neg: {", "neg: {depth_out: 3, "), text=SEARCH)
    assert (error.rule, error.op) == ("R2 role", "neg")


# Ops that are no kernels


def test_operators_and_functions_are_ops_by_their_shape_alone() -> None:
    turn = Linear(np.array([[0.6, 0.8], [-0.8, 0.6]], np.float32))
    ops = {"turn": operator_op("turn", turn, "z"), "half": host_op("half", lambda z: z / 2, "z", {"h": Field((3, 2))})}
    config = parse("stages: [{id: a, device: cpu, ops: [turn, half]}]\nsource: {fields: {z: {shape: [3, 2]}}}")
    plan = make_plan(config, ops=ops, measure=False)
    assert plan.stages[0].after == PayloadSchema({"z": Field((3, 2)), "h": Field((3, 2))})
    with dashi.open("cpu") as device:
        source, target = device.array(np.ones((3, 2), np.float32)), device.empty((3, 2))
        op: Any = plan.stages[0].ops[0]
        with device.program(op.bind(device, op.load(device), {"z": source}, {"z": target})) as program:
            program.run()
        assert np.array_equal(target.numpy(), turn_rows(np.ones((3, 2), np.float32)))
    call: Any = plan.stages[0].ops[1]
    assert call.call({"z": np.ones((3, 2), np.float32)})["h"].tolist() == [[0.5, 0.5]] * 3


def turn_rows(z: Any) -> Any:
    return z @ np.array([[0.6, 0.8], [-0.8, 0.6]], np.float32)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [((3, 3), "f32", r"advances states of shape \(2,\)"), ((3, 2), "f64", "advances states of f32")],
)
def test_an_operator_refuses_states_that_are_not_its_own(shape: Any, dtype: str, message: str) -> None:
    op = operator_op("turn", Linear(np.eye(2, dtype=np.float32)), "z")
    with pytest.raises(InputError, match=message):
        op.makes(PayloadSchema({"z": Field(shape, dtype)}))


def test_a_function_is_held_to_what_it_said() -> None:
    op = host_op("f", lambda z: z.astype(np.float64), "z", {"h": Field((2,))})
    with pytest.raises(InputError, match=r"op 'f' returned f64 \(2,\) as 'h', and had said f32 \(2,\)"):
        op.call({"z": np.ones(2, np.float32)})
    several = host_op("f", lambda z: (z, z), "z", {"h": Field((2,))})
    with pytest.raises(InputError, match="returned 2 arrays for the fields h"):
        several.call({"z": np.ones(2, np.float32)})

    def write(z: Any) -> Any:
        z[0] = 1
        return z

    with pytest.raises(ValueError, match="read-only"):
        host_op("f", write, "z", {"h": Field((2,))}).call({"z": np.ones(2, np.float32)})


# The worked example


def example_config() -> Any:
    return load(EXAMPLE, devices=dict.fromkeys(("gpu_weak", "gpu_mid", "gpu_strong"), "cpu"))


def test_the_worked_example_plans() -> None:
    plan = make_plan(example_config(), measure=False)
    assert placed(plan) == [
        ["pq_pack_bits", "pq_lut_build"], ["gemv_tiled", "fma3"], ["spmv_csr", "nonlinear_admissibility_squash"],
        ["operator_step", "clamp"],
    ]  # fmt: skip
    assert [op.spec.id for op in plan.stages[3].observers] == ["defect_local", "reduce_max"]
    assert [stage.depth_out for stage in plan.stages] == [1, 2, 3, 4]
    assert [set(link.schema) for link in plan.links] == [
        {"table", "support", "signs", "supported"}, {"scaled", "support", "signs", "supported"},
        {"admissible", "support", "signs", "supported"},
    ]  # fmt: skip


def test_its_chain_assigned_by_search_obeys_the_depths() -> None:
    config = example_config()
    chain = tuple(op for stage in config.stages for op in stage.ops)
    searched = replace(config, chain=chain, stages=tuple(replace(stage, ops=()) for stage in config.stages))
    plan = make_plan(searched, measure=False)
    assert [op for stage in placed(plan) for op in stage] == list(chain[:-2])
    assert plan.prediction.period <= make_plan(config, measure=False).prediction.period


def test_its_ops_compute_what_their_kernels_do(device: dashi.Device) -> None:
    """Every op of the chain bound as a stage would bind it, against the kernels called by hand."""
    from dashi.stream._draws import items_of

    plan = make_plan(example_config(), measure=False)
    payload: dict[str, Any] = {name: device.array(a) for name, a in items_of(plan.config.source, 3).items()}
    schema = plan.config.source.schema
    for stage in plan.stages:
        for op in (*stage.ops, *stage.observers):
            anyone: Any = op
            forms = op.makes(schema)
            outputs = {name: device.empty(form.shape, form.dtype) for name, form in forms.items()}
            inputs = {name: payload[name] for name in op.reads}
            with device.program(anyone.bind(device, anyone.load(device), inputs, outputs)) as program:
                program.run()
            payload |= outputs
            schema = schema.with_fields(forms)
    z, before = payload["z"].numpy(), payload["admissible"].numpy().reshape(1, 256)
    assert payload["largest_defect"].numpy()[0] == np.abs(z - before).max() > 0
    assert int(payload["supported"].numpy()[0]) == np.count_nonzero(payload["field"].numpy())
    assert np.abs(z).max() <= 1


def test_encoders_decoders_and_carrier_ops_are_ops() -> None:
    """A field to its proxy and back, and a ternary field to two bits a site and back, in one chain."""
    from dashi.flow import proxy

    layout = proxy.Schema(n=16, k_cut=4)
    rng = np.random.default_rng(3)
    field = rng.standard_normal((16, 16)).astype(np.float32)
    size = proxy.encode(layout, field[None], device="cpu").shape[1]
    ops = {
        "encode": host_op(
            "encode", lambda w: proxy.encode(layout, w[None], device="cpu"), "w", {"z": Field((1, size))}
        ),
        "decode": host_op("decode", lambda z: proxy.decode(layout, z, device="cpu"), "z", {"v": Field((1, 16, 16))}),
    }
    text = """
stages: [{id: a, device: cpu, ops: [encode, pack, unpack, decode]}]
ops:
  pack: {kernel: pack_trits2, inputs: {s: s}, outputs: {result: packed}}
  unpack: {kernel: unpack_trits2, inputs: {packed: packed}, params: {n: 100}, outputs: {result: again}}
source: {fields: {w: {shape: [16, 16]}, s: {shape: [100], dtype: i8, draw: trits}}}
result: [v, again]
"""
    plan = make_plan(parse(text), ops=ops, measure=False)
    assert plan.stages[0].after == PayloadSchema({"v": Field((1, 16, 16)), "again": Field((100,), "i8")})
    encode, decode = (plan.stages[0].ops[i] for i in (0, 3))
    smooth: Any = decode.call(encode.call({"w": field}))["v"]  # pyright: ignore[reportAttributeAccessIssue]
    again = proxy.decode(layout, proxy.encode(layout, smooth, device="cpu"), device="cpu")
    assert np.allclose(smooth, again, atol=1e-5)  # what the proxy keeps of a field it keeps whole
