"""The bits of the portable maths are part of the contract: certificates and hashes made with them must stay valid."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from dashi.kernels import portable
from dashi.kernels.portable._bits import F32, F64, Format

# SHA-256 of the results on `fixed_arguments`, first 16 digits: fp32, fp64.
DIGESTS = {
    "reciprocal": ("2e60e5f16a6612d2", "8ace68e2d16bdfd6"),
    "sqrt": ("6b8e406007ed5725", "cc6dc008651a7141"),
    "rsqrt": ("e2ac839228bf183e", "ced67bb697f4b380"),
    "exp": ("62f537cf505fbace", "22c16e7167021169"),
    "log": ("7fff2756ff94b6cb", "bcb990e6849063b2"),
    "sin": ("cdb6502db4082a43", "2a4ca421b76172c5"),
    "cos": ("56ac773a1b96ecda", "8381cb245315ca86"),
    "tanh": ("d4ce77251731d5ff", "1ab1553ade15e31a"),
    "softplus": ("45b2c44d782cd5fc", "dcc021b0325d0004"),
    "erf": ("13b5c5694c8f5c21", "59f14d16f56c1169"),
    "atan": ("7ac7deffe6069209", "b150fa292eba6285"),
    "floor": ("105418cefed5372f", "ce264475979ca260"),
    "ceil": ("f0279b93a5b554d9", "54251e70d306cd9e"),
    "trunc": ("cd916643364d1954", "3c3e3565df2ea8a7"),
    "round": ("b4caf28fda9ead9d", "552134e970562d03"),
    "pow": ("4af5827ac582bcd8", "8ae49f91abe9a54c"),
    "atan2": ("8ee03c4bd358bd94", "1a10c47491ac2ff2"),
}
PAIRS = {"pow", "atan2"}
"""Functions of two arrays: the second is the first from its end."""


def fixed_arguments(form: Format) -> np.ndarray:
    """Mixed bit patterns and the range -100..100, by arithmetic alone: random generators may change."""
    mixed = np.arange(1, (1 << 16) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    spread = (words >> np.uint64(64 - 8 * np.dtype(form.word).itemsize)).astype(form.word).view(form.float)
    near = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 * 200 - 100
    return np.concatenate([spread, near.astype(form.float)])


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_the_bits_of_the_portable_maths_never_change(name):
    arguments = [(fixed_arguments(form), fixed_arguments(form)[::-1])[: 1 + (name in PAIRS)] for form in (F32, F64)]
    found = [getattr(portable, name)(*values) for values in arguments]
    assert tuple(hashlib.sha256(values.tobytes()).hexdigest()[:16] for values in found) == DIGESTS[name]
