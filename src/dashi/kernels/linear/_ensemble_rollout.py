"""Ensembles over workgroups that wait for each other: the plan of `_include/rollout_ensemble.glsl`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dashi.errors import LimitError
from dashi.kernels._psi import NUMBERS as PSI_NUMBERS
from dashi.kernels._psi import SPEC
from dashi.kernels._work import ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Dispatch, Limits, Scalar, Shader, Spec
from dashi.kernels.linear._dense_rollout import LARGEST, RUN, WIDEST, chunks, cut

FEATURES: Final = frozenset({"atomics_int64", "memory_model", "int64", "rendezvous"})
REGISTERS: Final = 65536
"""Registers of a multiprocessor, 32 bits each: no device known has fewer for its largest workgroup, and what does not
fit is only slower."""
OTHERS: Final = 44
"""Registers of an invocation besides columns, sums and words."""
DISPATCH_US: Final = 100_000


@dataclass(frozen=True)
class EnsembleLayout:
    """How an ensemble lies on workgroups: invocations of a workgroup, columns of each, states at a time, workgroups
    side by side, groups of them, and the states of a group."""

    lanes: int
    each: int
    at_once: int
    across: int
    groups: int
    share: int


def ensemble_layout(
    m: int, d: int, size: int, limits: Limits, asked: Mapping[str, int] | None = None
) -> EnsembleLayout | None:
    """Groups of workgroups that advance several states each, as few states at a time as keep the words on their way;
    None where a workgroup cannot hold what it needs."""
    runs = max(1, ceil_div(d, RUN))
    lanes = runs * WIDEST
    # Where nothing is known a plan is made all the same, so that the features which it lacks are named.
    resident = limits.resident or 1 << 16
    if limits.resident and (limits.subgroup < WIDEST or lanes % limits.subgroup or lanes > limits.invocations):
        return None
    tuning = asked or {}
    tries = [(tuning["each"], tuning["set"])] if tuning.get("each") else [(2, 2), (1, 4), (1, 2), (1, 1)]
    for each, at_once in tries:
        across = max(1, ceil_div(d, WIDEST * each))
        groups = resident // across
        words = size // 4
        registers = OTHERS + words * (each * RUN + each * at_once) + 2 * words * at_once * RUN // WIDEST
        shared = at_once * runs * size * (RUN + 16 // size + 2 * each * WIDEST) + 1024
        if groups and registers * lanes <= REGISTERS and shared <= limits.shared_bytes:
            share = max(1, -(-m // max(1, min(groups, ceil_div(m, at_once)))))
            return EnsembleLayout(lanes, each, at_once, across, ceil_div(m, share), share)
    return None


def dispatches(call: Call, layout: EnsembleLayout) -> Iterator[Dispatch]:
    """Dispatches of a rollout: one that writes the words of the first states, then the steps."""
    m, d = call.dims["m"], call.dims["d"]
    require_groups(call, layout.groups * layout.across)
    groups, trips = groups_for(m * d, 256, call.limits)
    push = {"count": m * d, "stride": 256 * groups}
    yield Dispatch("first", ("z", "words", "flag"), push, (groups, 1, 1), trips)
    parity = m * d * call.dtype.size // 4
    numbers = {"m": m, "d": d, "across": layout.across, "share": layout.share, "parity": parity}
    scalars = {name: call.scalars[name] for name in ("alpha", "low", "high")}
    spec = {"LANES": layout.lanes, "EACH": layout.each, "SET": layout.at_once, "PSI": int(call.scalars["psi"])}
    trips = 1 + 3 * ceil_div(layout.share, layout.at_once)
    most = int(DISPATCH_US / (0.6 + layout.share * layout.each * d * call.dtype.size / 1e4))
    for first, last in chunks(int(call.scalars["steps"]), max(1, min(most, call.limits.loop_trips // trips))):
        push = {**numbers, "first": first, "last": last, **scalars}
        count = (layout.groups * layout.across, 1, 1)
        # The polls are not counted: what they wait for is under way, and they are bounded.
        yield Dispatch("together", ("A", "b", "words", "flag", "result"), push, count, (last - first) * trips, spec)


def require_groups(call: Call, groups: int) -> None:
    """Workgroups that wait for each other cannot be dispatched in parts."""
    if groups > call.limits.groups:
        raise LimitError(
            f"{groups} workgroups that wait for each other are more than the {call.limits.groups} of a dispatch.",
            "go step by step.",
        )


def shaders(*, fast: bool) -> dict[str, Shader]:
    """The shaders of a rollout: `together` advances, `first` writes the words of the first states."""
    return {
        "together": Shader(
            (
                Binding("A"),
                Binding("b"),
                Binding("words", "u64", "readwrite"),
                Binding("flag", "u32", "readwrite"),
                Binding("result", access="write"),
            ),
            (*(Scalar(n, "u32") for n in "m d across share parity first last".split()), *PSI_NUMBERS),
            (Spec("LANES", 128), Spec("EACH", 1), Spec("SET", 1), SPEC),
            local=("LANES", 1, 1),
            file="ensemble.comp",
            includes=("portable.glsl",),
            features=FEATURES | {"subgroup_quad", "subgroup"},
            extensions=("GL_EXT_control_flow_attributes",),
            contracted=False,
            prelude=f"#define FAST {int(fast)}\nconst uint OUTS = {WIDEST}u;\n",
        ),
        "first": Shader(
            (Binding("source"), Binding("words", "u64", "write"), Binding("flag", "u32", "write")),
            (Scalar("count", "u32"), Scalar("stride", "u32")),
            file="first.comp",
            includes=("portable.glsl",),
        ),
    }


def why_not_spread(m: int, d: int, size: int, limits: Limits, asked: Mapping[str, int] | None = None) -> str:
    """Why m states of d values cannot be spread over workgroups that wait for each other; empty if they can."""
    if limits.software:
        return "workgroups of a processor run one after another"
    if not limits.resident:
        return "this device is not known to run workgroups at the same time"
    if d > LARGEST:
        return f"a state of {d} values is larger than {LARGEST}"
    needed = m * cut(d, (asked or {}).get("outs", 0), limits).across
    if needed <= limits.resident or ensemble_layout(m, d, size, limits, asked):
        return ""
    return f"{needed} workgroups are more than the {limits.resident} at a time"
