"""Claims about particles on a mesh: their weights, laws of vortices, the same bits everywhere, the solver of flow."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.core import rollout
from dashi.errors import DashiError, InputError, NonFiniteError
from dashi.filament import Atoms, FullMesh, render
from dashi.filament.mesh import mesh_size, modes_of
from dashi.flow import Flow, ensemble, to_field
from dashi.flow.simulation import simulate
from dashi.kernels.vortex import _mesh as mesh
from dashi.runtime import Device

PI = math.pi


def blob(radius: float = 0.5, **named: Any) -> Atoms:
    return Atoms.of([[PI, PI]], [2.0], radius, domain="periodic", **named)


@pytest.mark.parametrize(("order", "degree"), [(4, 2), (6, 4)])
def test_weights_are_exact_for_polynomials_of_their_degree(order: int, degree: int) -> None:
    x = np.linspace(0, 1, 11)
    for power in range(degree + 2):
        terms = [np.asarray(mesh.weight(x - k, order)) * (x - k) ** power for k in range(-4, 6)]
        error = float(abs(np.sum(terms, axis=0) - (power == 0)).max())
        assert (error <= 1e-13) == (power <= degree)


def test_a_rendered_blob_has_its_circulation_and_its_peak() -> None:
    field = render(blob(), 64)
    assert abs(field.sum() * (2 * PI / 64) ** 2 - 2.0) <= 1e-13
    assert abs(field[32, 32] - 2.0 / (PI * 0.25)) <= 1e-13


def test_a_lone_vortex_decays_as_lamb_and_oseen_say(vulkan: Device) -> None:
    flow = Flow(64, nu=0.05, dt=0.1, dtype="float64")
    start = modes_of(blob(), 64)
    later = render(blob(math.sqrt(0.25 + 4 * 0.05 * 1.0)), 64)
    particles = to_field(rollout(FullMesh(flow), start, 10, device=vulkan).state[0])
    # The images of the box strain the vortex: the solver itself is 1.6e-4 of the peak away from the exact solution.
    assert abs(particles - (later - later.mean())).max() <= 3e-4 * later.max()
    finer = Flow(64, nu=0.05, dt=0.025, dtype="float64")
    solver = to_field(simulate(finer, start, 40, device="cpu", host_fft=True).state[0])
    assert abs(particles - solver).max() <= 1e-4 * later.max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_runs_have_the_same_hashes_on_every_device(dtype: str, vulkan: Device) -> None:
    flow = Flow(16, nu=0.01, dt=0.05, dtype=dtype)
    start = ensemble(flow, "random", [1, 2], peak=2)
    runs = [rollout(FullMesh(flow), start, 6, device=where, hash_every=2) for where in ("cpu", vulkan)]
    assert runs[0].hashes == runs[1].hashes


def test_a_resolved_flow_is_that_of_the_solver(vulkan: Device) -> None:
    flow = Flow(64, nu=0.01, dt=0.02, dtype="float64")
    start = ensemble(flow, "random", [1], peak=3)
    particles = rollout(FullMesh(flow), start, 50, device=vulkan).state
    solver = simulate(flow, start, 50, device="cpu", host_fft=True).state
    a, b = to_field(particles[0]).ravel(), to_field(solver[0]).ravel()
    assert np.corrcoef(a, b)[0, 1] > 0.999


def test_a_step_that_passes_a_cell_is_an_error_with_a_fix() -> None:
    asked = lab.FilamentRequest(atoms=blob(), way="full", n=64, dt=2.0, steps=3)
    with pytest.raises(NonFiniteError, match="smaller dt"):
        lab.run_filament(asked, device="cpu")


def test_a_run_gives_particles_and_closed_books_and_a_certificate(here: Path) -> None:
    rows = [{"x": 2.0, "y": 3.0, "gamma": 1.0, "radius": 0.6}, {"x": 4.0, "y": 3, "gamma": -1, "radius": 0.6}]
    (here / "pair.json").write_text(json.dumps({"atoms": rows}))
    line = "filament run --atoms pair.json --domain periodic --nu 0.01 --dt 0.05 --steps 4 --way full --n 32"
    done = CliRunner().invoke(app, f"{line} --device cpu --out run --json".split())
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert len(printed["atoms"]) > 100
    assert [event["kind"] for event in printed["events"]] == ["refit"]
    net = sum(atom["sign"] * atom["quanta"] for atom in printed["atoms"])
    assert net + printed["accounts"]["refit"]["signed"] == 0
    assert abs(printed["invariants"]["last"]["circulation"]) <= 1e-14
    assert lab.verify(lab.VerifyRequest(certificate=here / "run"), device="auto").same


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"atoms": Atoms.of([[0, 0]], [1.0], 0.5)}, "periodic box"), ({"way": "free", "n": 64}, "no mesh"),
        ({"n": 1}, "1"), ({"atoms": blob(1e-4), "n": None}, "finer than"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(more: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"atoms": blob(), "way": "full", "n": 64, "dt": 0.1, "steps": 1, **more}
    with pytest.raises(DashiError, match="Fix: ") as caught:
        lab.run_filament(lab.FilamentRequest(**asked), device="cpu")
    assert words in str(caught.value)


def test_the_mesh_resolves_the_smallest_core() -> None:
    assert mesh_size(blob(0.2)) == 64
    assert mesh_size(blob(0.1)) == 128
    with pytest.raises(InputError, match="finer"):
        mesh_size(blob(0.001))
