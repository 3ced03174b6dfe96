"""The bits of every operator are part of the contract: where they change, its `version` rises, and certificates of the
version before are refused with the reason.

operator_bits.json has the hash of fixed runs of every kind, version and element type; rows of earlier versions stay as
they are. `python tests/golden/test_operator_bits.py` prints the rows of this dashi.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dashi.core import Affine, Bands, BlockSparse, Csr, Linear, Operator, Quadratic, rollout
from dashi.core.operators._catalogue import KINDS
from dashi.core.operators.bands import ring
from dashi.filament import AtomRules, Atoms, FreeAtoms, FullMesh, NormalAtoms
from dashi.filament.normal import table_of
from dashi.flow import Flow, Kolmogorov, Stochastic
from dashi.flow._operator import Vorticity
from dashi.flow.proxy import Schema
from dashi.flow.proxy.closure._operator import SlavedGalerkin
from dashi.flow.proxy.closure._tables import Band, Closure
from dashi.flow.proxy.galerkin._operator import Galerkin
from dashi.flow.terms import FlowWithTerms
from dashi.kernels.hash._blake3 import hexdigest128
from dashi.runtime import Device, open_device

TABLE = Path(__file__).with_name("operator_bits.json")
DTYPES = ("float32", "float64")
STEPS = 4


def numbers(shape: tuple[int, ...], dtype: str, salt: int = 1) -> np.ndarray:
    """Values in -0.5 .. 0.5 by arithmetic alone: random generators may change."""
    with np.errstate(over="ignore"):
        mixed = (np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
        words = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((words >> np.uint64(40)).astype(np.float64) * 2.0**-24 - 0.5).reshape(shape).astype(dtype)


def matrix(size: int, dtype: str) -> np.ndarray:
    return numbers((size, size), dtype) * np.asarray(4 / size, dtype)


def sparse(size: int, dtype: str) -> np.ndarray:
    dense = matrix(size, dtype)
    dense[np.add.outer(np.arange(size), 2 * np.arange(size)) % 3 != 0] = 0
    return dense


def csr(dtype: str) -> Csr:
    dense = sparse(70, dtype)
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=70))])
    return Csr(dense[rows, columns], columns, indptr, numbers((70,), dtype, 5), "softplus", alpha=1.5)


def quadratic(dtype: str) -> Quadratic:
    size, many = 20, 200
    i, j, k = (np.arange(many) * factor % size for factor in (3, 7, 11))
    linear, force = numbers((size, size), dtype, 3), numbers((size,), dtype, 4)
    return Quadratic(i, j, k, numbers((many,), dtype), dt=0.01, L=linear, f=force, size=size)


def bands(dtype: str, phi: str) -> Bands:
    return Bands(ring(9, dtype), abs(numbers((3,), dtype)), numbers((3, 3), dtype, 2), 0.25, phi)


def slaved(dtype: str, scheme: str) -> SlavedGalerkin:
    flow, schema = Flow(32, scheme=scheme, forcing=Kolmogorov(2), dtype=dtype), Schema(32, 5.0)  # pyright: ignore[reportArgumentType]
    band = Band.of(schema, 10.5)
    held, modes = len(band.held), len(band.modes)
    shapes = {"keep": (1, held), "lift": (1, 1, modes), "gain": (2, held), "drain": (held,)}
    tables = {name: abs(numbers(shape, dtype, 6)) * np.asarray(0.1, dtype) for name, shape in shapes.items()}
    return SlavedGalerkin(flow, schema, Closure(**tables), 10.5)


def flows(dtype: str) -> Iterator[Flow]:
    """Lengths of every sort (powers of two in each range of radices, odd factors), schemes and forces."""
    yield Flow(16, dtype=dtype)
    yield Flow(32, scheme="heun", forcing=Kolmogorov(2, 0.5), drag=0.1, dtype=dtype)
    yield Flow(30, scheme="etdrk4", forcing=Stochastic(2.0, 4.0, seed=3), dtype=dtype)
    yield Flow(64, smagorinsky=0.17, dtype=dtype)
    yield Flow(128, scheme="heun", dtype=dtype)


def with_terms(dtype: str) -> FlowWithTerms:
    n = 20
    return FlowWithTerms(
        Flow(n, scheme="etdrk4", forcing=Kolmogorov(2, 0.5), beta=0.3, hyperviscosity=1e-4, dtype=dtype),
        factors={"waves": numbers((n, 11), dtype, 8)},
        forces={"wind": numbers((n, n), dtype, 9)},
        fields={"h": numbers((n, n), dtype, 10)},
        scalars={"dye": 1e-2},
        formulas={"w": "-0.1 * w * abs(w)", "dye": "where(h > 0, -v, 0.5 * dye_x)"},
    )


CASES: dict[str, Callable[[str], Iterator[Operator]]] = {
    "linear": lambda dtype: (Linear(matrix(size, dtype)) for size in (3, 70, 200)),
    "affine": lambda dtype: (
        Affine(matrix(70, dtype), numbers((70,), dtype), psi, alpha=1.5, low=-0.3, high=0.2)
        for psi in ("none", "squash", "softplus", "clamp")
    ),
    "csr": lambda dtype: iter([csr(dtype)]),
    "block_sparse": lambda dtype: iter([BlockSparse.from_dense(sparse(64, dtype), 4, psi="squash")]),
    "quadratic": lambda dtype: iter([quadratic(dtype)]),
    "bands": lambda dtype: (bands(dtype, phi) for phi in ("none", "softplus")),
    "vorticity-terms": lambda dtype: iter([with_terms(dtype)]),
    "vorticity": lambda dtype: map(Vorticity, flows(dtype)),
    "galerkin": lambda dtype: (
        Galerkin(Flow(32, scheme=scheme, forcing=Kolmogorov(2), dtype=dtype), Schema(32, 10.0), None, form)
        for scheme in ("rk4", "heun", "etdrk4")
        for form in ("grid", "triads")
    ),
    "galerkin-slaved": lambda dtype: (slaved(dtype, scheme) for scheme in ("rk4", "heun", "etdrk4")),
    "filament-free": lambda dtype: (
        FreeAtoms(9, dt=0.01, quantum=0.5, nu=0.01, box=box, core=core, mixed=mixed, dtype=dtype)
        for box, core, mixed in ((0.0, "gaussian", False), (2.0, "gaussian", True), (0.0, "algebraic", True))
    ),
    "filament-full": lambda dtype: (FullMesh(Flow(16, nu=0.01, dtype=dtype), order) for order in (4, 6)),
    "filament-normal": lambda dtype: iter(
        [NormalAtoms(9, AtomRules(merge=0.9, widest=0.7, budget=9), dt=0.01, quantum=0.5)] if dtype == "float64" else []
    ),
}  # fmt: skip


def start(operator: Operator) -> np.ndarray:
    """Two states, large enough for the last bits of what is not linear to be seen in the next."""
    states = numbers((2, *operator.shape), operator.dtype.name, 7)
    if isinstance(operator, NormalAtoms):
        atoms = Atoms.of(states[0, :9, :2], np.arange(1, 10) * 2.0, abs(states[0, :9, 2]) + 0.25, quantum=0.5)
        return np.stack([table_of(atoms, 9), table_of(atoms.taken(slice(0, 8)), 9)])
    if isinstance(operator, FreeAtoms):
        states[..., 2] = abs(states[..., 2]) + np.asarray(0.125, operator.dtype)  # squares of radii
    return states


def hash_of_runs(kind: str, dtype: str, device: Device) -> str:
    """The hash of the hashes after every step of the kind's runs."""
    digests: list[str] = []
    for operator in CASES[kind](dtype):
        run = rollout(operator, start(operator), STEPS, device=device, hash_every=1)
        digests += [entry.digest for entry in run.hashes]
    return hexdigest128(" ".join(digests).encode())


GOLDEN: dict[str, dict[str, str]] = json.loads(TABLE.read_text())


def test_every_kind_has_runs_and_a_row_of_its_version() -> None:
    assert set(CASES) == set(KINDS)
    missing = [f"{kind}/{KINDS[kind].version}" for kind in CASES if f"{kind}/{KINDS[kind].version}" not in GOLDEN]
    assert not missing, f"add the rows of {missing} that `python {TABLE.parent.name}/{Path(__file__).name}` prints"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", CASES)
def test_the_bits_of_an_operator_are_those_of_its_version(kind: str, dtype: str, device: Device) -> None:
    version = KINDS[kind].version
    assert hash_of_runs(kind, dtype, device) == GOLDEN[f"{kind}/{version}"][dtype], (
        f"{kind} gives other bits than its version {version} did: raise `version` of {KINDS[kind].__name__} to "
        f"{version + 1}, so that certificates of version {version} are refused with the reason, and add its row to "
        f"{TABLE.name}"
    )


def test_versions_of_a_kind_have_different_bits() -> None:
    rows = [row[dtype] for row in GOLDEN.values() for dtype in DTYPES]
    assert len(set(rows)) == len(rows)


if __name__ == "__main__":
    for kind in CASES:
        version = KINDS[kind].version
        with open_device(sys.argv[1] if len(sys.argv) > 1 else "cpu") as opened:
            row = {dtype: hash_of_runs(kind, dtype, opened) for dtype in DTYPES}
        print(f' "{kind}/{version}": {json.dumps(row)},')
