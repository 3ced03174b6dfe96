"""Certificates of every class of operator, to carry from one machine to another.

python benchmarks/operator_certificates.py inputs FOLDER           # here: states and operators, both types
python benchmarks/operator_certificates.py certify FOLDER DEVICE   # there: a certificate of each
python benchmarks/operator_certificates.py verify FOLDER DEVICE    # anywhere: all certificates in the folder
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dashi.core.certificates.inputs import save_operator
from dashi.core.operators.affine import Affine, Linear
from dashi.core.operators.bands import Bands, tree
from dashi.core.operators.operator import Operator
from dashi.core.operators.quadratic import Quadratic
from dashi.core.operators.sparse import BlockSparse, Csr


def operators(kind: str) -> Iterator[tuple[str, Operator, int]]:
    """A name, an operator, and how many states to roll out."""
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.standard_normal((130, 130)))[0].astype(kind)
    bias = (0.1 * rng.standard_normal(130)).astype(kind)
    yield "linear", Linear(turn), 1
    for psi in ("squash", "softplus", "clamp"):
        yield psi, Affine(turn, bias, psi), 3
    yield "csr", Csr.from_dense(np.where(rng.random((130, 130)) < 0.1, turn, 0).astype(kind)), 1
    yield "block_sparse", BlockSparse.from_dense(turn, side=26), 2
    i, j, k = (rng.integers(0, 40, 400) for _ in range(3))
    yield "quadratic", Quadratic(i=i, j=j, k=k, c=(0.1 * rng.standard_normal(400)).astype(kind), dt=0.01, size=40), 1
    rates, coupling = np.full(6, 0.1, kind), np.full((6, 6), 0.05, kind)
    yield "bands", Bands(tree(4, 2, dtype=kind), kappa=rates, coupling=coupling, strength=0.1, phi="squash"), 1


def make_inputs(folder: Path) -> None:
    """Two files for each operator and type."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(9)
    for kind in ("float32", "float64"):
        for name, operator, states in operators(kind):
            save_operator(folder / f"{name}-{kind}-operator.npz", operator)
            z0 = np.abs(rng.standard_normal((states, *operator.shape))).astype(kind)
            np.savez(folder / f"{name}-{kind}-z0.npz", z0=z0)


def dashi(*arguments: str) -> int:
    """Runs a command of the program; its exit code."""
    return subprocess.run([sys.executable, "-m", "dashi", *arguments], check=False).returncode


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "inputs":
        make_inputs(folder)
        return
    device = sys.argv[3]
    failed = 0
    if what == "certify":
        for operator in sorted(folder.glob("*-operator.npz")):
            stem = operator.name.removesuffix("-operator.npz")
            files = ("--z0", str(folder / f"{stem}-z0.npz"), "--operator", str(operator))
            certificate = str(folder / f"{stem}-{device.replace(':', '')}.json")
            run = ("--steps", "300", "--hash-every", "50", "--certificate", certificate, "--device", device)
            failed += dashi("rollout", *files, *run) != 0
    else:
        for certificate in sorted(folder.glob("*.json")):
            failed += dashi("verify", str(certificate), "--device", device) != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
