"""Whatever the named arrays of an operator, a model or a checkpoint become, reading them gives one, or an error."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi.core.certificates.inputs import load_operator, save_operator
from dashi.core.observations.observation import Hash, Observation, SheetRow
from dashi.core.operators.affine import Affine
from dashi.core.operators.bands import Bands, path
from dashi.core.operators.operator import Operator
from dashi.core.operators.quadratic import Quadratic
from dashi.core.operators.sparse import BlockSparse, Csr
from dashi.core.rollouts._checkpoint import read_checkpoint, write_checkpoint
from dashi.core.rollouts._observers import BandSheet, Hashes, StateMetrics
from dashi.core.rollouts.run import Run
from dashi.errors import InputError
from dashi.flow import Flow
from dashi.flow._operator import Vorticity
from dashi.flow.proxy import Schema
from dashi.flow.proxy.catalogue import MODELS, load_model, save_model
from dashi.flow.proxy.galerkin._operator import Galerkin
from dashi.io.arrays import read_arrays, write_arrays

FLOW, SCHEMA = Flow(16), Schema(16, 2.0)
REUSED = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBERS = st.sampled_from([0, -1, 1, 2**62, -(2**63), 1e308, 5e-324, np.nan, np.inf, -np.inf, 0.5])
TEXTS = st.sampled_from(["", "none", "squash", "kolmogorov", "float64", "float16", "rk4", "$$", "\x1b", "x" * 100])
SHAPES = st.sampled_from([(), (0,), (1,), (2,), (3, 3), (2, 0), (1, 1, 1)])
KINDS = st.sampled_from(["f8", "f4", "i8", "u1", "u4", "?"])


@st.composite
def odd_arrays(draw: Any) -> Any:
    """Numbers or text of any shape."""
    if draw(st.booleans()):
        return np.array(draw(TEXTS) or "x")
    with np.errstate(all="ignore"):
        return np.full(draw(SHAPES), draw(NUMBERS)).astype(draw(KINDS))


def spoil(arrays: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    """The arrays with one that is other, gone, doubled under another name, or changed in one place."""
    name = data.draw(st.sampled_from(sorted(arrays)))
    values = arrays[name]
    match data.draw(st.sampled_from(["other", "gone", "named", "place", "cut"])):
        case "other":
            return {**arrays, name: data.draw(odd_arrays())}
        case "gone":
            return {key: one for key, one in arrays.items() if key != name}
        case "named":
            return {**arrays, data.draw(st.sampled_from([name.upper(), f"{name}x", "schema_x", "array_x"])): values}
        case "place" if values.size and values.dtype.kind in "fiu":
            changed = values.copy().reshape(-1)
            with np.errstate(all="ignore"):
                changed[data.draw(st.integers(0, values.size - 1))] = np.array(data.draw(NUMBERS)).astype(values.dtype)
            return {**arrays, name: changed.reshape(values.shape)}
        case _:
            return {**arrays, name: values[: len(values) // 2] if values.ndim else values.reshape(1)}


OPERATORS: dict[str, Operator] = {
    "affine": Affine(np.eye(2), np.ones(2), "squash"),
    "csr": Csr([1.0, 2.0], [0, 1], [0, 1, 2]),
    "block_sparse": BlockSparse.from_dense(np.eye(4), 2),
    "quadratic": Quadratic([0], [1], [0], [1.0], dt=0.1, L=np.eye(2)),
    "bands": Bands(path(3), [0.1, 0.2], np.eye(2), 1.0),
    "vorticity": Vorticity(FLOW),
    "galerkin": Galerkin(FLOW, SCHEMA),
}


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("kind", OPERATORS)
@given(data=st.data())
@REUSED
def test_changed_operators_are_read_or_refused(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    file = tmp_path / "op.npz"
    save_operator(file, OPERATORS[kind])
    write_arrays(file, spoil(read_arrays(file), data))
    with contextlib.suppress(InputError):
        operator = load_operator(file)
        stored = {name for name in read_arrays(file) if name not in ("kind", "version")}
        assert stored <= {*operator.arrays, *operator.parameters}


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@given(data=st.data())
@REUSED
def test_changed_models_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    parameters = {f"flow_{name}": value for name, value in FLOW.parameters.items()}
    model = MODELS["perfect"].restore(SCHEMA, 0.1, {}, parameters)
    file = tmp_path / "m.npz"
    save_model(file, model)
    write_arrays(file, spoil(read_arrays(file), data))
    with contextlib.suppress(InputError):
        load_model(file)


@given(data=st.data())
@REUSED
def test_changed_checkpoints_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    observations = (Observation(10, 1.0, 1.0, 1.0, 0.0, 0, None),)
    records = {"hashes": (Hash(10, "0" * 32),), "observations": observations, "sheet": (SheetRow(10, np.zeros(2)),)}
    operator, observers = Affine(np.eye(2), None, "none"), (Hashes(10), StateMetrics(10), BandSheet(10, 2))
    now = Run(operator=operator.facts, steps=20, state=np.zeros((1, 2)), records=records, observers=observers)
    file = tmp_path / "c.npz"
    write_checkpoint(file, "mine", now)
    write_arrays(file, spoil(read_arrays(file), data))
    with contextlib.suppress(InputError):
        again = read_checkpoint(file, "mine", operator, observers, (1, 2))
        assert all(1 <= one.step <= again.steps for one in again.hashes)
