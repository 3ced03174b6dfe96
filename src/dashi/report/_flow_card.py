"""The card "The flow": its equation in words and symbols, all that decides it, and its scales as they were measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dashi.flow.equations import Flow, Kolmogorov, Scheme, Stochastic
from dashi.report._html import facts, safe, section
from dashi.report.scales import Scales, forcing_reynolds

if TYPE_CHECKING:
    from dashi.report.page import Report

_SCHEMES: Final[Mapping[Scheme, str]] = {
    "rk4": "Runge-Kutta of order 4 with an integrating factor",
    "heun": "Heun's method, of order 2, with an integrating factor",
    "etdrk4": "exponential time differencing of order 4",
}


@dataclass(frozen=True, eq=False)
class FlowFacts:
    """A flow as its page describes it."""

    flow: Flow
    scales: Scales | None = None
    measured_on: str = ""
    """What the scales were measured on."""
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    """What else is known: seeds, members, the start."""
    role: str = ""
    """What the flow is to the page, where it is not what the page shows."""


def number(value: float, digits: int = 3) -> str:
    """A number as people write it: `0.005`, `1.23`, `2π`, `4.2 × 10⁻⁵`."""
    if math.isclose(value, 2 * math.pi, rel_tol=1e-9):
        return "2π"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text.replace("-", "−")
    head, power = text.split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{head.replace('-', '−')} × 10{raised}"


def wave(flow: Flow, wavenumber: int) -> str:
    """The wave number of a force times y: `4y` in a box of 2π, else with the box's side."""
    return f"{wavenumber}y" if number(flow.length) == "2π" else f"2π {wavenumber} y / {number(flow.length)}"


def equation(flow: Flow) -> str:
    """The equation as HTML, with the terms that are there, and their values below it."""
    right, values = list[str](), list[str]()
    if flow.nu > 0:
        right.append("<var>ν</var> ∇²<var>ω</var>")
        values.append(f"<var>ν</var> = {number(flow.nu)}")
    if flow.hyperviscosity > 0:
        p = flow.hyperviscosity_order
        right.append(f"− <var>ν</var><sub>{p}</sub> (−∇²)<sup>{p}</sup> <var>ω</var>")
        values.append(f"<var>ν</var><sub>{p}</sub> = {number(flow.hyperviscosity)}")
    if flow.smagorinsky > 0:
        right.append("∇·(<var>ν</var><sub>t</sub> ∇<var>ω</var>)")
        values.append(
            f"<var>ν</var><sub>t</sub> = ({number(flow.smagorinsky)} × {number(flow.dx)})² |<var>S</var>| (Smagorinsky)"
        )
    if flow.drag > 0:
        right.append("− <var>μω</var>")
        values.append(f"<var>μ</var> = {number(flow.drag)}")
    if flow.beta:
        right.append("− <var>βv</var>")
        values.append(f"<var>β</var> = {number(flow.beta)}")
    if flow.forcing is not None:
        right.append("<var>f</var>")
        values.append(_force(flow))
    sides = " + ".join(right).replace("+ −", "−") or "0"
    where = f'<span class="values">{", ".join(values)}</span>' if values else ""
    return (
        f'<p class="equation"><span>∂<var>ω</var>/∂<var>t</var> + <b>u</b>·∇<var>ω</var> = {sides}</span> {where}</p>'
    )


def _force(flow: Flow) -> str:
    """The curl of the force."""
    if isinstance(flow.forcing, Kolmogorov):
        size = -flow.forcing.amplitude * flow.forcing.wavenumber * 2 * math.pi / flow.length
        return f"<var>f</var> = {number(size)} cos({wave(flow, flow.forcing.wavenumber)})"
    return "<var>f</var> random"


def in_words(flow: Flow) -> str:
    """What the equation says."""
    acts = ["viscosity smooths it"] if flow.nu > 0 else []
    acts += ["hyperviscosity smooths its smallest scales"] if flow.hyperviscosity > 0 else []
    acts += ["an eddy viscosity stands for scales below the grid"] if flow.smagorinsky > 0 else []
    acts += ["a beta plane makes Rossby waves of it"] if flow.beta else []
    acts += ["a linear drag slows it"] if flow.drag > 0 else []
    forcing = flow.forcing
    if isinstance(forcing, Kolmogorov):
        size = "" if forcing.amplitude == 1 else f"{number(forcing.amplitude)} "
        acts.append(f"a steady force along x, {size}sin({wave(flow, forcing.wavenumber)}), drives it")
    elif isinstance(forcing, Stochastic):
        acts.append(
            f"random kicks of all modes with {number(forcing.low)} ≤ |k| ≤ {number(forcing.high)} drive it, with a "
            f"power of {number(forcing.rate)} on average"
        )
    else:
        acts.append("nothing drives it, so it decays" if flow.nu > 0 or flow.drag > 0 else "nothing drives it")
    listed = f"{', '.join(acts[:-1])} and {acts[-1]}" if len(acts) > 1 else acts[0]
    return (
        "Two-dimensional incompressible flow in a doubly periodic square, as vorticity ω: the velocity u that belongs "
        f"to ω carries it along; {listed}."
    )


def kind(flow: Flow) -> str:
    """The kind of flow in a word or two, for titles."""
    if isinstance(flow.forcing, Kolmogorov):
        return "Kolmogorov flow"
    return "flow driven by random kicks" if flow.forcing is not None else "decaying flow"


def card(report: Report) -> str:
    """The section; empty where nothing is known of a flow."""
    known = report.flow
    if known is None:
        return ""
    flow = known.flow
    listed = {
        "grid": f"{flow.n} × {flow.n} points, modes up to {flow.cut}",
        "box": f"{number(flow.length)} × {number(flow.length)}",
        "time step": f"{number(flow.dt)}, {flow.dtype}",
        "scheme": f"{flow.scheme}: {_SCHEMES[flow.scheme]}",
        **known.more,
    }
    scales = known.scales
    measured = dict[str, str]()
    if scales is not None:
        measured["rms speed U"] = number(scales.speed)
        measured["integral scale ℓ"] = number(scales.length)
        reynolds = scales.reynolds(flow.nu)
        measured |= {} if reynolds is None else {"Reynolds number Re": number(reynolds)}
        measured["eddy turnover"] = f"{number(scales.turnover)} of flow time"
    forced = forcing_reynolds(flow)
    measured |= {} if forced is None else {"Re of the force": number(forced)}
    return section(
        "flow", "The flow", " ".join(text for text in (known.role, in_words(flow)) if text),
        f'<div class="card">{equation(flow)}{facts({**measured, **listed})}{_definitions(known)}</div>',
    )  # fmt: skip


def _definitions(known: FlowFacts) -> str:
    """How the scales are defined, in a line each."""
    lines = list[str]()
    if known.scales is not None:
        lines = [
            f"Measured on {safe(known.measured_on)}: U is the root mean square speed,",
            "ℓ = 2π Σ E(k)/k / Σ E(k) the integral scale of the energy spectrum E(k),",
            "Re = U ℓ / ν," if known.scales.reynolds(known.flow.nu) is not None else "",
            "and an eddy turnover lasts ℓ / U (U. Frisch, Turbulence, 1995, ch. 7).",
        ]
    if forcing_reynolds(known.flow) is not None:
        lines.append(
            "Re of the force is √F (L/2π)<sup>3/2</sup> / ν with the force's amplitude F (Chandler and Kerswell, "
            "doi 10.1017/jfm.2013.122)."
        )
    lines.append("All numbers are in the units of the box and of flow time.")
    return f'<p class="note">{" ".join(text for text in lines if text)}</p>'
