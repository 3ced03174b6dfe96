"""Inputs of the long rollout: a dense orthogonal operator and a start, D = 654, fp64, the same bits on every machine.

    python benchmarks/long_rollout.py [FOLDER]

They are written beside the certificate (docs/benchmarks/long-rollout), unless a folder is named.
The operator is a permutation times eight Householder reflections. The numbers come from SplitMix64 (Steele, Lea and
Flood 2014, doi 10.1145/2660193.2660195), the sums from the portable contraction, so no library has a say in the bits.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.kernels.portable import contract, divide

D = 654
REFLECTIONS = 8
BESIDE = Path(__file__).parents[1] / "docs" / "benchmarks" / "long-rollout"
Floats = npt.NDArray[Any]


def words(count: int, seed: int) -> npt.NDArray[np.uint64]:
    """SplitMix64."""
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(count: int, seed: int) -> Floats:
    """Between -1 and 1: the upper 53 bits, exactly."""
    return (words(count, seed) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def operator(d: int = D) -> Floats:
    """Orthogonal to rounding, and dense."""
    matrix = np.eye(d)[np.argsort(words(d, 1), kind="stable")]
    for i in range(REFLECTIONS):
        v = uniform(d, 100 + i)
        factor = divide(np.array([2.0]), contract(v, v[:, None]))
        matrix = matrix - (v * factor)[:, None] * contract(v, matrix)[None, :]
    return matrix


def main() -> None:
    parser = ArgumentParser(description="Writes the inputs of the long rollout.")
    parser.add_argument("folder", nargs="?", type=Path, default=BESIDE, help="default: beside the certificate")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with np.errstate(over="ignore"):
        np.savez(folder / "inputs.npz", A=operator(), z0=uniform(D, 7))
    sys.stdout.write(f"{folder / 'inputs.npz'}\n")


if __name__ == "__main__":
    main()
