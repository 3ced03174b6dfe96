"""Claims about atoms that move freely: their velocity, the same bits everywhere, jobs and commands."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.core import rollout
from dashi.errors import FileError, InputError, Interrupted, NonFiniteError
from dashi.filament import Atoms, read_atoms
from dashi.filament._invariants import invariants, regular_logarithm
from dashi.filament.free import FreeAtoms
from dashi.filament.state import atoms_of, rows_of
from dashi.kernels.vortex import _induction as induction
from dashi.runtime import Device

PI = math.pi


def some_atoms(n: int = 12, **named: Any) -> Atoms:
    rng = np.random.default_rng(n)
    radius = named.pop("radius", rng.uniform(0.3, 0.5, n))
    return Atoms.of(rng.uniform(0, 2 * PI, (n, 2)), rng.choice([-1, 1], n) * rng.uniform(0.2, 1, n), radius, **named)


def spectral_velocity(atoms: Atoms, n: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """Velocity on a grid, of the Fourier series of Gaussian blobs: Gamma/box^2 exp(-k^2 d^2/4 - i k x)."""
    k = np.fft.fftfreq(n, 1 / n)
    kx, ky = np.meshgrid(k, k, indexing="ij")
    square = kx**2 + ky**2
    modes = np.zeros((n, n), complex)
    for (x, y), gamma, radius in zip(atoms.place, atoms.circulation, atoms.radius, strict=True):
        modes += gamma / atoms.box**2 * np.exp(-square * radius**2 / 4 - 1j * (kx * x + ky * y))
    stream = -modes / np.where(square > 0, square, 1)  # u = -d/dy, v = d/dx of it
    stream[0, 0] = 0
    return tuple(np.fft.ifft2(part).real * n * n for part in (-1j * ky * stream, 1j * kx * stream))  # pyright: ignore[reportReturnType]


def test_velocity_in_the_box_is_that_of_the_fourier_series(device: Device) -> None:
    atoms = some_atoms(5, domain="periodic")
    u, v = spectral_velocity(atoms)
    grid = np.stack(np.meshgrid(*2 * [2 * PI * np.arange(128) / 128], indexing="ij"), axis=-1)[::8, ::8].reshape(-1, 2)
    targets = np.zeros((1, len(grid), 5))
    targets[0, :, :2] = grid - [2 * PI, 4 * PI]  # anywhere: the box repeats itself
    table = induction.terms(np.float64)
    rate = device.run(
        "vortex_velocity", targets, rows_of(atoms)[None], table, box=atoms.box, quantum=atoms.quantum
    ).numpy()[0]
    for exact, column in ((u, 0), (v, 1)):
        # The core of the nearest image alone is counted: up to exp(-pi^2 / 0.5^2) = 7e-18 of it is left out.
        assert abs(rate[:, column] - exact[::8, ::8].ravel()).max() <= 1e-14


def test_the_sum_of_lattice_series_is_the_sum_over_the_lattice() -> None:
    ring = np.arange(-60, 61)
    points = (ring[:, None] + 1j * ring).ravel()
    points = points[points != 0]
    for k, value in enumerate(induction.lattice_sums(4), start=1):
        if k > 1:  # the first falls off too slowly for a plain sum
            assert abs((points ** (-4.0 * k)).sum().real - value) <= 1e-12 * value


@pytest.mark.parametrize(("core", "h"), [("gaussian", (1 - math.exp(-4)) / 0.64), ("algebraic", 1 / (0.64 + 0.16))])
def test_cores_have_their_profiles(core: str, h: float) -> None:
    atoms = Atoms.of([[0, 0], [0.8, 0]], [2 * PI, 1e-9], 0.4, core=core)
    later = moved(atoms, 1e-3, 1)
    assert abs((later.place[1, 1] / 1e-3) / (h * 0.8) - 1) <= 1e-5


def moved(atoms: Atoms, dt: float, steps: int, device: Any = "cpu", **more: Any) -> Atoms:
    operator = FreeAtoms.of(atoms, dt=dt, **more)
    return atoms_of(rollout(operator, rows_of(atoms, operator.dtype), steps, device=device).state[0], atoms)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_runs_have_the_same_hashes_on_every_device(dtype: str, vulkan: Device) -> None:
    atoms = some_atoms(20, domain="periodic")
    operator = FreeAtoms.of(atoms, dt=0.02, nu=0.001, dtype=dtype)
    runs = [rollout(operator, rows_of(atoms, dtype), 12, device=where, hash_every=4) for where in ("cpu", vulkan)]
    assert runs[0].hashes == runs[1].hashes


def test_impulse_stays_where_cores_differ() -> None:
    atoms = some_atoms(9)
    first, last = invariants(atoms), invariants(moved(atoms, 0.05, 20))
    assert abs(first.impulse_x - last.impulse_x) <= 1e-13
    assert first.quanta == last.quanta


def test_the_logarithm_of_cores_is_ln_plus_the_exponential_integral() -> None:
    t = np.array([0.0, 1e-8, 0.5, 1.9999, 2.0, 5.0, 40.0])
    step = 1e-3  # by quadrature: the integral of (1 - exp(-s))/s from 0 to t, less Euler's constant
    exact = []
    for end in t:
        s = (np.arange(int(max(end, step) / step)) + 0.5) * (end / int(max(end, step) / step))
        exact.append((-np.expm1(-s) / np.where(s, s, 1)).mean() * end - 0.5772156649015329)
    assert abs(regular_logarithm(t) - exact).max() <= 1e-6
    assert abs(np.diff(regular_logarithm(np.array([2.0 - 1e-12, 2.0])))).max() <= 2e-12


def request(atoms: Atoms, **more: Any) -> lab.FilamentRequest:
    return lab.FilamentRequest(**{"atoms": atoms, "steps": 12, "dt": 0.05, "hash_every": 4, **more})


def test_a_run_leaves_atoms_and_a_certificate_that_is_verified(tmp_path: Path) -> None:
    atoms = some_atoms(4, domain="periodic")
    result = lab.run_filament(request(atoms, nu=0.01), device="cpu", out=tmp_path / "run")
    assert lab.verify(lab.VerifyRequest(certificate=tmp_path / "run"), device="auto").same
    stored = read_atoms(tmp_path / "run" / "atoms.json")
    assert np.array_equal(stored.place, result.atoms.place)
    assert ((stored.place >= 0) & (stored.place < stored.box)).all()
    assert stored.quanta.tolist() == atoms.quanta.tolist()
    assert result.first.step == 0
    assert [one.step for one in result.invariants][:2] == [0, 1]


def test_a_stopped_run_goes_on_with_the_hashes_of_a_whole_one(tmp_path: Path) -> None:
    atoms, whole = some_atoms(4), lab.run_filament(request(some_atoms(4), steps=60), device="cpu")

    with pytest.raises(Interrupted) as stopped:
        press_after(tmp_path / "run", atoms)
    assert 0 < stopped.value.partial.run.steps < 60
    again = lab.run_filament(
        request(atoms, steps=60, checkpoint_every=4), device="cpu", out=tmp_path / "run", resume=True
    )
    assert again.run.hashes == whole.run.hashes
    assert again.invariants == whole.invariants
    longer = again.run.resume(64)
    assert longer.hashes[:15] == whole.run.hashes


def press_after(out: Path, atoms: Atoms) -> None:
    from dashi.core.rollouts import _checkpoint
    from dashi.lab import filament_runs

    real = _checkpoint.write_checkpoint

    def pressed(*rest: Any) -> None:
        real(*rest)
        signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        calls = iter([pressed])
        patch.setattr(filament_runs, "write_checkpoint", lambda *rest: next(calls, real)(*rest))
        lab.run_filament(request(atoms, steps=60, checkpoint_every=4), device="cpu", out=out)


def test_atoms_on_top_of_each_other_do_not_move_each_other() -> None:
    atoms = Atoms.of([[1, 1], [1, 1]], [1.0, 1.0], 0.1)
    assert np.array_equal(moved(atoms, 0.1, 3).place, atoms.place)


def test_what_is_no_number_any_more_is_an_error_with_a_fix() -> None:
    atoms = Atoms.of([[0, 0], [1e-9, 0]], [1e300, 1e300], 1e-9)
    with pytest.raises(NonFiniteError, match="smaller dt"):
        lab.run_filament(request(atoms, dt=1e300), device="cpu")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"steps": 0}, "`steps=` is 0"), ({"dt": 0.0}, "`dt=` is 0"), ({"nu": -1.0}, "`nu=` is -1"),
        ({"way": "fre"}, "free"), ({"dtype": "float16"}, "`dtype=`"), ({"domain": "periodic"}, "that of the atoms"),
        ({"atoms": Atoms.empty()}, "no atoms"), ({"checkpoint_every": 1}, "`out=`"),
        ({"atoms": Atoms.of([[0, 0]], [1.0], 2.0, domain="periodic")}, "too wide"),
        ({"atoms": Atoms.of([[0, 0]], [1.0], 0.1, domain="periodic", core="algebraic")}, "no images"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match="Fix: ") as caught:
        lab.run_filament(request(**{"atoms": some_atoms(2), **more}), device="cpu")
    assert words in str(caught.value)


def test_the_command_prints_atoms_invariants_events_and_a_hash(here: Path) -> None:
    rows = [{"x": 0.0, "y": 0.0, "gamma": 1.0, "radius": 0.1}, {"x": 1.0, "y": 0, "gamma": 1, "radius": 0.1}]
    (here / "pair.json").write_text(json.dumps({"atoms": rows}))
    line = "filament run --atoms pair.json --domain free --nu 0 --dt 0.1 --steps 5 --way free --device cpu --json"
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert [atom["id"] for atom in printed["atoms"]] == [0, 1]
    assert printed["events"] == []
    assert printed["invariants"]["first"]["circulation"] == printed["invariants"]["last"]["circulation"] == 2.0
    assert len(printed["hash"]) == 32
    wrong = CliRunner().invoke(app, line.replace("pair.json", "none.json").split())
    assert (wrong.exit_code, "Fix: " in wrong.stderr) == (3, True)


def test_a_checkpoint_of_other_atoms_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        press_after(tmp_path / "run", some_atoms(4))
    with pytest.raises((FileError, InputError)):
        lab.run_filament(
            request(some_atoms(5), steps=60, checkpoint_every=4), device="cpu", out=tmp_path / "run", resume=True
        )
