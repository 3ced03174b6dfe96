"""Claims about the card of the flow: its scales against numbers worked out by hand, its equation, what is unknown."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dashi.flow._trajectory import FlowStrides, Trajectory
from dashi.flow.decode._album import Album
from dashi.flow.decode.settings import Settings
from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.flow.evaluation import save_evaluation
from dashi.flow.proxy.schema import Schema
from dashi.flow.simulation import simulate
from dashi.io._run_names import FIELDS
from dashi.report._flow_card import FlowFacts, equation, in_words, number
from dashi.report._flow_facts import facts_of_fields, facts_of_scores, listed
from dashi.report.example import example_evaluation
from dashi.report.films import Fields
from dashi.report.measures import measures
from dashi.report.page import Report, render
from dashi.report.run import EVALUATION, read_run
from dashi.report.scales import Scales, forcing_reynolds, measured_scales
from dashi.runtime._cpu_device import CpuDevice

pytest.importorskip("matplotlib")  # pages are drawn


def waves(flow: Flow, *parts: tuple[float, int]) -> Fields:
    """Vorticity sum of a cos(k x) over parts (a, k), k in units of 2 pi / L; twice the same frame."""
    x = np.arange(flow.n) * flow.dx * 2 * math.pi / flow.length
    field = np.broadcast_to(sum(a * np.cos(k * x) for a, k in parts), (flow.n, flow.n))
    return Fields(np.array([0.0, 3.0]), np.stack([field, field]))


@pytest.mark.parametrize(("length", "amplitude", "k"), [(2 * math.pi, 3.0, 4), (1.0, 0.5, 2)])
def test_scales_of_one_wave_are_those_worked_out_by_hand(length: float, amplitude: float, k: int) -> None:
    """w = a cos(q x) has v = (a / q) sin(q x): u_rms = a / (q sqrt 2), l = 2 pi / q, T = 2 pi sqrt 2 / a and
    Re = sqrt 2 pi a / (q^2 nu), with q = 2 pi k / L."""
    flow = Flow(32, nu=0.01, length=length)
    made = measures(waves(flow, (amplitude, k)), flow)
    result = measured_scales(made.energy, made.spectra, flow)
    assert result is not None
    q = 2 * math.pi * k / length
    # Sums of 32^2 terms in float64: rounding alone.
    assert result.speed == pytest.approx(amplitude / (q * math.sqrt(2)), rel=1e-12)
    assert result.length == pytest.approx(2 * math.pi / q, rel=1e-12)
    assert result.turnover == pytest.approx(2 * math.pi * math.sqrt(2) / amplitude, rel=1e-12)
    assert result.reynolds(flow.nu) == pytest.approx(math.sqrt(2) * math.pi * amplitude / (q * q * 0.01), rel=1e-12)


def test_the_integral_scale_weighs_wave_lengths_by_their_energy() -> None:
    """Vorticity 2 cos x + 4 cos 4x: energies a^2 / (4 k^2) are 1 and 1/4, so l = 2 pi (1 + 1/16) / (5/4)."""
    flow = Flow(32, nu=0.0)
    made = measures(waves(flow, (2.0, 1), (4.0, 4)), flow)
    result = measured_scales(made.energy, made.spectra, flow)
    assert result is not None
    assert result.speed == pytest.approx(math.sqrt(2 * 1.25), rel=1e-12)
    assert result.length == pytest.approx(2 * math.pi * 0.85, rel=1e-12)
    assert result.reynolds(flow.nu) is None


@pytest.mark.parametrize("energy", [np.zeros(3), np.full(3, np.nan), np.empty(0)])
def test_a_flow_that_does_not_move_or_is_not_finite_has_no_scales(energy: np.ndarray) -> None:
    assert measured_scales(energy, np.ones((3, 8)), Flow(16)) is None
    assert measured_scales(np.ones(3), np.full((3, 8), np.inf), Flow(16)) is None


def test_frames_that_are_not_finite_are_left_out_of_the_scales() -> None:
    flow, spectrum = Flow(16), np.array([[0.0, 1.0, 0.0], [np.nan, np.nan, np.nan]])
    assert measured_scales(np.array([2.0, np.inf]), spectrum, flow) == Scales(2.0, 2 * math.pi)


def test_the_reynolds_number_of_a_kolmogorov_force_is_that_of_its_literature() -> None:
    """sqrt(F) (L / 2 pi)^(3/2) / nu: with F = 4, L = 8 pi and nu = 0.1 it is 2 * 8 / 0.1."""
    flow = Flow(16, nu=0.1, length=8 * math.pi, forcing=Kolmogorov(2, 4.0))
    assert forcing_reynolds(flow) == pytest.approx(160.0, rel=1e-12)
    assert forcing_reynolds(replace(flow, nu=0.0)) is None
    assert forcing_reynolds(Flow(16, forcing=Stochastic())) is None


def plain(flow: Flow) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", equation(flow)))


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (
            Flow(32, nu=5e-3, drag=0.1, forcing=Kolmogorov(4, 1.0)),
            "∂ω/∂t + u·∇ω = ν ∇²ω − μω + f ν = 0.005, μ = 0.1, f = −4 cos(4y)",
        ),
        (Flow(32, nu=2e-5), "∂ω/∂t + u·∇ω = ν ∇²ω ν = 2 × 10⁻⁵"),
        (Flow(32, nu=0.0), "∂ω/∂t + u·∇ω = 0 "),
        (Flow(32, nu=0.0, forcing=Stochastic(3, 5, 0.1)), "∂ω/∂t + u·∇ω = f f random"),
        (
            Flow(32, nu=1e-3, length=1.0, forcing=Kolmogorov(2, -3.0)),
            "∂ω/∂t + u·∇ω = ν ∇²ω + f ν = 0.001, f = 37.7 cos(2π 2 y / 1)",
        ),
        (
            Flow(32, nu=1e-3, smagorinsky=0.17),
            "∂ω/∂t + u·∇ω = ν ∇²ω + ∇·(νt ∇ω) ν = 0.001, νt = (0.17 × 0.196)² |S| (Smagorinsky)",
        ),
    ],
)
def test_the_equation_holds_the_terms_that_are_there_with_their_values(flow: Flow, told: str) -> None:
    assert plain(flow) == told


def test_the_force_on_the_page_is_the_curl_that_the_solver_adds() -> None:
    from dashi.flow._operator import steady_force
    from dashi.flow.grid import to_field

    flow = Flow(16, length=3.0, forcing=Kolmogorov(2, 1.5))
    assert isinstance(flow.forcing, Kolmogorov)
    y = np.arange(16) * flow.dx
    size = -1.5 * 2 * 2 * math.pi / 3.0
    added = to_field(steady_force(flow, flow.forcing))
    assert np.allclose(
        added, np.broadcast_to((size * np.cos(2 * 2 * math.pi * y / 3.0))[:, None], (16, 16)), atol=1e-12
    )
    assert f"f = {number(size)} cos(2π 2 y / 3)" in plain(flow)


def test_words_say_what_acts_on_the_flow() -> None:
    assert in_words(Flow(16, nu=0.1, drag=0.2)).endswith(
        "viscosity smooths it, a linear drag slows it and nothing drives it, so it decays."
    )
    assert "random kicks of all modes with 3 ≤ |k| ≤ 5 drive it, with a power of 0.1" in in_words(
        Flow(32, forcing=Stochastic(3, 5, 0.1))
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.005, "0.005"), (2 * math.pi, "2π"), (4.2e-5, "4.2 × 10⁻⁵"), (-4, "−4"), (12345.0, "1.23 × 10⁴")],
)
def test_numbers_are_written_as_people_do(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seeds", "text"), [([3], "3"), ([4, 5], "4 and 5"), ([0, 1, 2, 3], "0 to 3"), ([1, 4, 9], "1, 4, 9")]
)
def test_seeds_are_listed_in_few_words(seeds: list[int], text: str) -> None:
    assert listed(seeds) == text


def test_the_page_of_scores_describes_the_flow_and_counts_in_eddy_turnovers(tmp_path: Path) -> None:
    evaluation = example_evaluation()
    save_evaluation(tmp_path / EVALUATION, evaluation)
    run = read_run(tmp_path)
    assert run.flow is not None
    assert run.flow.scales is not None
    shells = np.arange(1.0, len(evaluation.spectrum))
    scale = 2 * math.pi * float((evaluation.spectrum[1:] / shells).sum() / evaluation.spectrum[1:].sum())
    speed = math.sqrt(2 * float(evaluation.energy.mean()))
    assert run.flow.scales.turnover == pytest.approx(scale / speed, rel=1e-12)
    page = render(run)
    for text in (
        "∂<var>ω</var>/∂<var>t</var>", "<dt>Reynolds number Re</dt>", "64 × 64 points, modes up to 21",
        "etdrk4: exponential time differencing of order 4", "0.0125, float32", "<dd>1 and 2</dd>", "eddy turnovers",
        f"<dd>4, each 8 long ({number(8 * speed / scale)} eddy turnovers)</dd>",
    ):  # fmt: skip
        assert text in page, text
    best = float(evaluation.line("perfect").horizons[0.5].mean())
    assert f"({best * speed / scale:.2f} eddy turnovers)" in run.summary
    assert page.index('id="flow"') < page.index('id="skill"') < page.index("<details open")


@pytest.mark.parametrize("odd", [{"n": 64}, {**Flow(64).parameters, "nu": 10**400}, {**Flow(64).parameters, "n": "x"}])
def test_scores_that_do_not_say_their_flow_have_no_card_and_no_turnovers(
    tmp_path: Path, odd: dict[str, int | float | str]
) -> None:
    save_evaluation(tmp_path / EVALUATION, replace(example_evaluation(), parameters=odd))
    made = read_run(tmp_path)
    assert made.flow is None
    page = render(made)
    assert 'id="flow"' not in page
    assert "eddy turnover" not in page
    assert "in turnovers" not in page


def simulation(folder: Path, members: int) -> None:
    """What `dashi flow simulate --out` leaves of its fields."""
    flow = Flow(16, nu=0.01, dt=0.01, forcing=Kolmogorov(2, 1.0))
    seeds = [7 + j for j in range(members)]
    states = np.zeros((members, 16, 9, 2), np.float32)
    states[:, 2, 1] = 1.0
    every = FlowStrides(frame=5)
    told = {"initial": "random", "initial_options": "peak=3"}
    stored = Trajectory(folder / FIELDS, flow, seeds, ["vorticity"], every, transfer=False, provenance=told)
    with CpuDevice() as device:
        run = simulate(flow, states, 10, device=device, frame_every=5, frame=stored.add, host_fft=True)
    stored.commit(run)


def test_the_page_of_a_simulation_names_the_member_its_seed_and_all_parameters(tmp_path: Path) -> None:
    simulation(tmp_path, 4)
    run = read_run(tmp_path)
    assert run.fields is not None
    assert (run.fields.member, run.fields.unit) == ("member 0 of 4 (seed 7)", "1/T")
    page = render(run)
    for text in (
        "Vorticity, member 0 of 4 (seed 7)", "<dd>7 to 10</dd>", "<dd>random (peak=3)</dd>", "vorticity (1/T)",
        "f</var> = −2 cos(2y)", "rk4: Runge-Kutta", "Measured on the fields (3 frames of member 0 of 4 (seed 7))",
    ):  # fmt: skip
        assert text in page, text


def test_one_member_is_not_numbered(tmp_path: Path) -> None:
    simulation(tmp_path, 1)
    run = read_run(tmp_path)
    assert run.fields is not None
    assert run.fields.member == ""
    assert "<dt>seed</dt><dd>7</dd>" in render(run)


def test_decoded_fields_name_the_flow_of_their_model_and_are_none_of_its_own(tmp_path: Path) -> None:
    from dashi.errors import FileError
    from dashi.flow.decode.decoder import Decoder
    from dashi.flow.windows.recorded import windows_from_run

    flow, schema = Flow(16, nu=0.02, forcing=Kolmogorov(2, 1.0)), Schema(16, 3)
    album = Album(tmp_path, schema, 1, Settings(), 0.5, flow)
    z = np.zeros((1, schema.size), np.float32)
    z[0, :2] = 1.0
    with CpuDevice() as device, Decoder(schema, device, settings=Settings(), members=1) as decoder:
        for step in (0, 1):
            decoded = decoder.decode(z, "snapshots")
            assert decoded is not None
            album.add(step, decoded)
    made = read_run(tmp_path)
    assert made.fields is not None
    document = facts_of_fields(tmp_path / FIELDS, made.fields, made.measures, decoded=True)
    assert document is not None
    assert document.flow == flow
    assert document.scales is not None
    assert "decoded" in document.measured_on
    with pytest.raises(FileError, match="describes no flow"):
        windows_from_run(tmp_path)  # nobody fits to them as if they were the flow's


def test_names_in_the_card_are_text() -> None:
    bad = "<script>alert(1)</script>"
    given = FlowFacts(Flow(16), Scales(1.0, 1.0), bad, {bad: bad}, bad)
    page = render(Report("Card", flow=given))
    assert bad not in page
    assert page.count("&lt;script&gt;") == 4
    assert facts_of_scores(replace(example_evaluation(), seeds=(-1,) * 4)) is not None
