"""Checkpoints: read back bit for bit, with the records of all observers, and for no run but their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.observations.observation import Hash, Observation, SheetRow
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._checkpoint import identity, read_checkpoint, read_settings, write_checkpoint
from dashi.core.rollouts._observers import BandSheet, Hashes, StateMetrics
from dashi.core.rollouts.observer import Bound, Context, Observer
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import FileError
from dashi.io.arrays import read_arrays, write_arrays
from dashi.runtime import Device

OPERATOR = Linear(np.eye(5, dtype=np.float32))
OBSERVERS = (Hashes(100), StateMetrics(50), BandSheet(7, 5))


def sample(count: int = 3) -> Run:
    rng = np.random.default_rng(1)
    steps = range(1, count + 1)
    records: dict[str, Any] = {
        "hashes": tuple(Hash(100 * i, f"{i * 0x123456789ABCDEF:032x}") for i in steps),
        "observations": tuple(
            Observation(50 * i, 1.0 + i, math.inf if i == 2 else 0.1, 0.3, math.pi, 3, 4 if i == 2 else None)
            for i in steps
        ),
        "sheet": tuple(SheetRow(7 * i, rng.standard_normal(5)) for i in steps),
    }
    state = rng.standard_normal((2, 5)).astype(np.float32)
    records = {name: rows for name, rows in records.items() if rows}
    return Run(operator=OPERATOR.facts, steps=700, state=state, records=records, observers=OBSERVERS)


def read(file: Path, belongs: str = "abc") -> Run:
    return read_checkpoint(file, belongs, OPERATOR, OBSERVERS, (2, 5))


@pytest.mark.parametrize("count", [0, 3])
def test_a_checkpoint_is_read_back_bit_for_bit(count: int, tmp_path: Path) -> None:
    now = sample(count)
    write_checkpoint(tmp_path / "c.npz", "abc", now)
    stored = read(tmp_path / "c.npz")
    for name in ("steps", "hashes", "observations", "sheet_steps", "observers"):
        assert getattr(stored, name) == getattr(now, name)
    for name in ("state", "sheet"):
        assert getattr(stored, name).tobytes() == getattr(now, name).tobytes()
        assert getattr(stored, name).shape == getattr(now, name).shape
    assert read_settings(tmp_path / "c.npz") == {
        "hashes": {"every": 100}, "observations": {"every": 50}, "sheet": {"every": 7, "bands": 5},
    }  # fmt: skip


def test_what_only_the_last_step_was_looked_at_for_is_left_out(tmp_path: Path) -> None:
    run = sample()
    write_checkpoint(tmp_path / "c.npz", "abc", replace(run, records={"hashes": (*run.hashes, Hash(650, "0" * 32))}))
    assert read(tmp_path / "c.npz").hashes == run.hashes


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c.npz", "abc", sample())
    with pytest.raises(FileError, match=r"is a checkpoint of a run with other inputs. Fix: give the inputs"):
        read(tmp_path / "c.npz", "abd")


def test_an_identity_tells_operators_states_and_what_else_is_said(tmp_path: Path) -> None:
    z0 = np.ones((1, 5), np.float32)
    own = identity(OPERATOR, z0)
    others = [
        identity(Linear(2 * np.eye(5, dtype=np.float32)), z0),
        identity(OPERATOR, 2 * z0),
        identity(OPERATOR, z0, n=1),
    ]
    assert own == identity(Linear(np.eye(5, dtype=np.float32)), z0.copy())
    assert len({own, *others}) == 4


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("state", np.zeros((2, 6), np.float32)),
        ("state", np.zeros((2, 5))),
        ("step", np.array([3])),
        ("step", np.array(-3)),
        ("sheet:every", np.array(3)),
        ("sheet:bands", np.array(-4)),
        ("hashes.digest", np.zeros((3, 15), np.uint8)),
        ("hashes.steps", np.array(3)),
        ("observations.numbers", np.zeros((3, 5))),
        ("observations.nonfinite", np.zeros((2, 3), np.int64)),
        ("sheet.energies", np.zeros((2, 5))),
        ("sheet.energies", np.zeros((3, 5), np.int32)),
        ("version", np.array("2")),
        ("extra", np.array(2)),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(name: str, values: Any, tmp_path: Path) -> None:
    file = tmp_path / "c.npz"
    write_checkpoint(file, "abc", sample())
    write_arrays(file, {**read_arrays(file), name: values})
    with pytest.raises(FileError, match=r"(is damaged|is not a checkpoint).* Fix: start anew"):
        read(file)


@pytest.mark.parametrize("version", [1, 3])
def test_a_checkpoint_of_another_version_is_refused_by_its_number(version: int, tmp_path: Path) -> None:
    file = tmp_path / "c.npz"
    write_checkpoint(file, "abc", sample())
    write_arrays(file, {**read_arrays(file), "version": np.array(version)})
    for reading in (read, read_settings):
        with pytest.raises(FileError, match=rf"of version {version}; this dashi reads version 2. Fix: finish that run"):
            reading(file)


class Largest(Observer[tuple[int, float]]):
    """The largest value, as someone else might write an observer."""

    name = "largest"
    at_start = True

    def __init__(self, every: int) -> None:
        self.every = every

    def bind(self, context: Context) -> Bound:
        def steps(before: Any, after: Any, slots: Any) -> Any:
            return [context.device.bind("reduce_max", after, out=slots[0])]

        return Bound([((1,), context.operator.dtype)], steps, lambda step, values: At(step, float(values[0][0])))

    def columns(self, shape: Any) -> Mapping[str, Any]:
        return {"value": ((), np.dtype(np.float64))}

    def pack(self, record: Any) -> Mapping[str, Any]:
        return {"value": record.value}

    def unpack(self, step: int, values: Mapping[str, Any]) -> Any:
        return At(step, float(values["value"]))


class At:
    def __init__(self, step: int, value: float) -> None:
        self.step, self.value = step, value


def test_a_run_with_an_observer_of_ones_own_goes_on_from_its_checkpoint(device: Device, tmp_path: Path) -> None:
    operator = Linear(np.diag(np.linspace(0.5, 1.5, 5)).astype(np.float32))
    z0 = np.ones(5, np.float32)

    def run(steps: int, resume: Run | None = None) -> Run:
        return rollout(
            operator, z0, steps, device=device, observers=[Largest(3)], hash_every=4, observe_every=5, sheet_every=2,
            bands=5, resume=resume,
        )  # fmt: skip

    whole, part = run(20), run(10)
    write_checkpoint(tmp_path / "c.npz", "mine", part)
    kept = read_checkpoint(tmp_path / "c.npz", "mine", operator, part.observers, (1, 5))
    again = run(20, kept)
    assert [(one.step, one.value) for one in again.records["largest"]] == [
        (one.step, one.value) for one in whole.records["largest"]
    ]
    assert [one.step for one in again.records["largest"]] == [0, 3, 6, 9, 12, 15, 18]
    assert again.hashes == whole.hashes
    assert again.observations == whole.observations
    assert np.array_equal(again.sheet, whole.sheet)
    assert (again.timed_from, again.operator.kind) == (10, "linear")
