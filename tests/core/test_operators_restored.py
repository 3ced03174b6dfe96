"""An operator comes back from all of its arrays and parameters, and from nothing else: what it lacks is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.certificates.inputs import load_operator, save_operator
from dashi.core.operators._catalogue import KINDS, restore
from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.bands import Bands, path
from dashi.core.operators.operator import Operator
from dashi.core.operators.quadratic import Quadratic
from dashi.core.operators.sparse import BlockSparse, Csr
from dashi.errors import InputError
from dashi.filament import AtomRules, FreeAtoms, FullMesh, NormalAtoms
from dashi.flow import Flow
from dashi.flow._operator import Vorticity
from dashi.flow.proxy import Schema
from dashi.flow.proxy.closure._operator import SlavedGalerkin
from dashi.flow.proxy.closure._tables import Band, Closure
from dashi.flow.proxy.galerkin._operator import Galerkin
from dashi.flow.terms import FlowWithTerms

FLOW, SCHEMA = Flow(16), Schema(16, 2.0)


def slaved() -> SlavedGalerkin:
    band = Band.of(SCHEMA, 4.0)
    held, modes = len(band.held), len(band.modes)
    shapes = {"keep": (1, held), "lift": (1, 1, modes), "gain": (2, held), "drain": (held,)}
    closure = Closure(**{name: np.zeros(shape, FLOW.numpy_dtype) for name, shape in shapes.items()})
    return SlavedGalerkin(FLOW, SCHEMA, closure, 4.0)


MAKERS: dict[str, Callable[[], Operator]] = {
    "linear": lambda: Linear(np.eye(2)),
    "affine": lambda: Affine(np.eye(2), np.ones(2), "squash"),
    "csr": lambda: Csr([1.0], [0], [0, 1]),
    "block_sparse": lambda: BlockSparse.from_dense(np.eye(2), 1),
    "quadratic": lambda: Quadratic([0], [0], [0], [1.0], dt=0.1, size=2),
    "bands": lambda: Bands(path(2), [0.1], [[0.0]], 1.0),
    "vorticity": lambda: Vorticity(FLOW),
    "galerkin": lambda: Galerkin(FLOW, SCHEMA),
    "galerkin-slaved": slaved,
    "vorticity-terms": lambda: FlowWithTerms(FLOW, forces={"wind": np.ones((16, 16))}, scalars={"dye": 0.1}),
    "filament-free": lambda: FreeAtoms(2, dt=0.1, quantum=0.5),
    "filament-normal": lambda: NormalAtoms(2, AtomRules(budget=2), dt=0.1, quantum=0.5),
    "filament-full": lambda: FullMesh(Flow(16, dtype="float64")),
}
EVERY = pytest.mark.parametrize("kind", MAKERS)


def test_every_kind_is_tried() -> None:
    assert set(MAKERS) == set(KINDS)


@EVERY
def test_an_operator_comes_back_as_it_was(kind: str, tmp_path: Path) -> None:
    operator = MAKERS[kind]()
    save_operator(tmp_path / "op.npz", operator)
    again = load_operator(tmp_path / "op.npz", operator.dtype)
    assert again.parameters == operator.parameters
    assert {n: v.tobytes() for n, v in again.arrays.items()} == {n: v.tobytes() for n, v in operator.arrays.items()}


@EVERY
@pytest.mark.parametrize("name", ["guarantee", "B", "l"])
def test_an_array_that_an_operator_does_not_have_is_refused(kind: str, name: str) -> None:
    operator = MAKERS[kind]()
    with pytest.raises(InputError, match=rf"{name}|too many") as error:
        restore(kind, {**operator.arrays, name: np.ones(2)}, operator.parameters)
    assert error.value.fix


@EVERY
@pytest.mark.parametrize("name", ["guarantee", "Psi", "dT"])
def test_a_parameter_that_an_operator_does_not_have_is_refused(kind: str, name: str) -> None:
    operator = MAKERS[kind]()
    with pytest.raises(InputError, match=rf"{name}|too many") as error:
        restore(kind, operator.arrays, {**operator.parameters, name: 1.0})
    assert error.value.fix


@EVERY
def test_a_parameter_of_another_type_is_refused(kind: str) -> None:
    operator = MAKERS[kind]()
    for name, value in operator.parameters.items():
        for other in [str(value), True] if not isinstance(value, str) else [7, f"{value}x"]:
            with pytest.raises(InputError):
                restore(kind, operator.arrays, {**operator.parameters, name: other})


NAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "another case": (
        lambda: restore("csr", {**Csr([1.0], [0], [0, 1]).arrays, "B": np.ones(1)}, {}), "did you mean 'b'",
    ),
    "one letter": (
        lambda: restore("affine", {"A": np.eye(2)}, {"alhpa": 0.5}), "has no parameter 'alhpa'.*did you mean 'alpha'",
    ),
    "of a wider kind": (
        lambda: restore("linear", {"A": np.eye(2), "b": np.ones(2)}, {}),
        "has no array 'b'; it has 'A'. Fix: use the kind 'affine', which has it, or leave it away",
    ),
    "a parameter of a wider kind": (
        lambda: restore("linear", {"A": np.eye(2)}, {"psi": "squash"}), "use the kind 'affine', which has it",
    ),
    "instead of one that is needed": (
        lambda: restore("linear", {"a": np.eye(2)}, {}), r"needs 'A', which is not there \(there is 'a'\)",
    ),
    "two of which one is used": (
        lambda: restore(
            "quadratic", {**Quadratic([0], [0], [0], [1.0], dt=0.1, L=np.eye(2)).arrays, "L_data": np.ones(1)},
            {"dt": 0.1},
        ),
        "has no array 'L_data'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NAMES)
def test_names_that_are_near_are_named(what: str) -> None:
    attempt, text = NAMES[what]
    with pytest.raises(InputError, match=text):
        attempt()


def test_a_file_with_an_array_too_many_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "op.npz", kind="linear", version=1, A=np.eye(2), b=np.ones(2))
    with pytest.raises(InputError, match=r"has no array 'b'.* Fix: use the kind 'affine'"):
        load_operator(tmp_path / "op.npz")


def test_an_affine_operator_without_b_adds_nothing() -> None:
    operator = restore("affine", {"A": np.eye(2)}, {"psi": "squash", "alpha": 0.5, "low": -1.0, "high": 1.0})
    assert not operator.arrays["b"].any()
