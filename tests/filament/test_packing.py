"""Codes of fields: every prefix decodes or says what is missing, and a longer one is never further from the field."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import FileError, InputError
from dashi.filament import pack, unpack
from dashi.filament.code import _atom_code as atom_code
from dashi.filament.code._modes import from_modes, to_modes
from dashi.filament.code._pursuit import fitted, pursue
from dashi.filament.code._range_coder import RangeDecoder, RangeEncoder, UncertainError
from dashi.filament.code._wavelets import HIGH, LOW, from_wavelets, to_wavelets


def random_field(n: int, slope: float, seed: int, sharp: bool = False) -> Any:
    """A random field of a falling spectrum; a sharp one has strong vortices."""
    modes = np.fft.rfft2(np.random.default_rng(seed).standard_normal((n, n)))
    k = np.hypot(np.fft.fftfreq(n, 1 / n)[:, None], np.fft.rfftfreq(n, 1 / n)[None])
    k[0, 0] = 1
    field = np.fft.irfft2(modes * k**slope, s=(n, n))
    field = np.sign(field) * np.abs(field) ** 3 if sharp else field
    return field - field.mean()


def error(a: Any, b: Any) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def errors_of_prefixes(data: bytes, field: Any, sizes: Any) -> list[float]:
    """The errors that prefixes of these sizes decode to; a prefix within the header is refused."""
    errors: list[float] = []
    for size in sizes:
        try:
            part = unpack(data[:size])
        except FileError:
            assert size < 20
            continue
        assert part.complete is (size == len(data))
        assert bool(part.missing) is not part.complete
        errors.append(error(part.field, field))
    return errors


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000), n=st.sampled_from([8, 12]), slope=st.floats(-3, 0), sharp=st.booleans(),
    atoms=st.sampled_from([0, 3]), aim=st.sampled_from([0.3, 0.05]),
)  # fmt: skip
def test_every_prefix_decodes_and_a_longer_one_is_never_further_from_the_field(
    seed: int, n: int, slope: float, sharp: bool, atoms: int, aim: float
) -> None:
    field = random_field(n, slope, seed, sharp)
    packed = pack(field, max_error=aim, basis="wavelets", atoms=atoms)
    errors = errors_of_prefixes(packed.data, field, range(len(packed.data) + 1))
    assert errors[-1] <= aim
    assert errors[-1] == pytest.approx(packed.error, rel=1e-6)
    assert all(b <= a * (1 + 1e-12) for a, b in zip([1.0, *errors], errors, strict=False))  # to rounding


@pytest.mark.parametrize("sharp", [False, True])
def test_prefixes_of_modes_are_never_further_from_the_field_either(sharp: bool) -> None:
    field = random_field(16, -1, 3, sharp)
    packed = pack(field, max_error=0.02, basis="modes", atoms=2)
    errors = errors_of_prefixes(packed.data, field, [*range(8, 24), *range(24, len(packed.data), 9), len(packed.data)])
    assert errors[-1] <= 0.02
    assert all(b <= a * (1 + 1e-12) for a, b in zip([1.0, *errors], errors, strict=False))


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.sampled_from([8, 10, 12, 16, 24, 32]), slope=st.floats(-4, 0), sharp=st.booleans(),
    atoms=st.sampled_from([0, 2, 8]), aim=st.sampled_from([0.5, 0.1, 1e-2, 1e-4, 1e-7]),
    step=st.integers(1, 7),
)  # fmt: skip
def test_prefixes_of_many_random_fields_are_never_further_from_them(
    seed: int, n: int, slope: float, sharp: bool, atoms: int, aim: float, step: int
) -> None:
    field = random_field(n, slope, seed, sharp)
    packed = pack(field, max_error=aim, basis="wavelets", atoms=atoms)
    errors = errors_of_prefixes(packed.data, field, [*range(0, len(packed.data), step * n // 8), len(packed.data)])
    assert errors[-1] <= aim
    assert all(b <= a * (1 + 1e-9) for a, b in zip([1.0, *errors], errors, strict=False))  # 1e-7 loses nine digits


@pytest.mark.parametrize("most", [20, 33, 64, 200, 5000])
@pytest.mark.parametrize("atoms", [0, 6])
def test_a_budget_of_bytes_is_held_and_a_larger_one_is_more_exact(most: int, atoms: int) -> None:
    field = random_field(32, -2, 1)
    packed = pack(field, max_bytes=most, basis="wavelets", atoms=atoms)
    assert len(packed.data) <= most
    assert error(unpack(packed.data).field, field) == pytest.approx(packed.error, rel=1e-6)
    assert packed.error <= pack(field, max_bytes=most - 2, basis="wavelets", atoms=atoms).error
    assert sum(packed.bits.values()) == 8 * len(packed.data)


def test_atoms_make_the_code_of_vortices_shorter() -> None:
    n, random = 64, np.random.default_rng(2)
    vortices = [
        atom_code.Gaussian(random.uniform(0, n), random.uniform(0, n), random.uniform(2, 5), random.choice([-1.0, 1.0]))
        for _ in range(8)
    ]
    field = np.sum([atom_code.drawn(vortex, n) for vortex in vortices], axis=0)
    field -= field.mean()
    with_atoms, without = pack(field, max_error=0.1), pack(field, max_error=0.1, atoms=0)
    assert with_atoms.atoms >= 8
    assert len(with_atoms.data) < 0.7 * len(without.data)
    refined = fitted(field, pursue(field, 8))
    assert error(sum(atom_code.drawn(one, n) for one in refined), field) < error(
        sum(atom_code.drawn(one, n) for one in pursue(field, 8)), field
    )


def test_the_shorter_basis_is_taken() -> None:
    points = np.arange(64) * (2 * math.pi / 64)
    waves = np.sin(3 * points)[:, None] * np.cos(5 * points)[None] + 0.3 * np.cos(7 * points)[None]
    assert pack(waves, max_error=0.01, atoms=0).basis == "modes"
    spike = np.zeros((64, 64))
    spike[20, 33], spike[41, 7] = 1, -1
    assert pack(spike, max_error=0.01, atoms=0).basis == "wavelets"


GOLDEN = {
    ("wavelets", 0): "6446101000050014d2751aeb8e0ee125094eea65d3f6a63c706f8f2cbf595e6d0cfa5068ebb4098d568b31bd0b"
    "86ac0f014b7664e5b7bb3b4d",
    ("modes", 0): "644611100005001542ddf62dcd4ba81cd1fa47e402727db995583d27ad234882d04dc63aac83f041d4ca6f7831"
    "652f3e7f976db475fac242ae",
    ("wavelets", 4): "644614100005041501b57e53d7b01bf23902dd524fffc2ef93faffd6c99d700098eb7aa76d29c12c5dc1056bab"
    "c64b09945983472184eb65f21cb6f98ccdda6d1c",
}


def test_the_bytes_are_the_same_everywhere() -> None:
    # Made of whole numbers, so that the field is the same too. Other bytes are another version of the code.
    rows, columns = np.meshgrid(np.arange(16), np.arange(16), indexing="ij")
    field = ((rows * rows * 7 + columns * rows * 5 + columns * 3) % 31 - 15).astype(np.float64)
    field -= np.round(field.mean() * 64) / 64
    for (basis, atoms), code in GOLDEN.items():
        assert pack(field, max_error=0.6, basis=basis, atoms=atoms).data.hex() == code


def test_another_grid_holds_the_same_field() -> None:
    points = np.arange(32) * (2 * math.pi / 32)
    field = np.sin(3 * points)[:, None] * np.cos(2 * points)[None]
    data = pack(field, max_error=1e-4).data
    assert error(unpack(data, n=64).field[::2, ::2], field) < 2e-4
    assert unpack(data, n=16).field.shape == (16, 16)


def test_nothing_is_packed_into_a_header() -> None:
    packed = pack(np.zeros((16, 16)))
    assert (len(packed.data) < 16, packed.error) == (True, 0.0)
    assert not unpack(packed.data).field.any()


FIELD = random_field(16, -1, 0)


@pytest.mark.parametrize(
    ("field", "options", "what"),
    [
        (np.where(FIELD > 0, np.nan, FIELD), {}, "values of the field are not finite"),
        (FIELD + 1.0, {}, "the field has a mean of"),
        (FIELD[:, :9], {}, "a field has the shape"),
        (FIELD, {"max_error": 0.0}, "`max_error=` is 0.0"),
        (FIELD, {"max_error": math.nan}, "`max_error=` is nan"),
        (FIELD, {"max_error": 0.1, "max_bytes": 100}, "both `max_error=` and `max_bytes=`"),
        (FIELD, {"max_bytes": 0}, "`max_bytes=` is 0"),
        (FIELD, {"max_bytes": 5}, "`max_bytes=5` is less than the header"),
        (FIELD, {"basis": "wave"}, "there is no basis 'wave'"),
        (FIELD, {"atoms": -1}, "`atoms=` is -1"),
        (FIELD, {"atoms": "many"}, "`atoms=` is 'many'"),
        (FIELD * 1e-200, {}, "the field has values of"),
        (FIELD * 1e200, {}, "the field has values of"),
    ],
)
def test_what_cannot_be_packed_is_refused(field: Any, options: Any, what: str) -> None:
    with np.errstate(over="ignore"), pytest.raises(InputError, match=what) as caught:
        pack(field, **options)
    assert caught.value.fix


def test_codes_that_were_edited_are_refused() -> None:
    data = pack(FIELD, max_error=0.05).data
    for edited, what in (
        (data[:-1] + bytes([data[-1] ^ 1]), "the code was edited"),
        (data + b"\0", "the code was edited"),
        (b"xx" + data, "this is no packed field"),
        (data[:2] + b"\x20" + data[3:], "the code is of version 2"),
        (data[:3] + b"\xff\xff\xff\xff\x7f" + data[4:], "which cannot be"),
        (data[:3] + b"\xff" * 12, "without an end"),
        (data[:6], "cut short in its header"),
        (b"", "cut short in its header"),
    ):
        with pytest.raises(FileError, match=what):
            unpack(edited)
    with pytest.raises(InputError, match="`n=` is 3"):
        unpack(data, n=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=300), st.floats(0, 1))
def test_bits_come_back_and_a_prefix_gives_the_first_of_them(bits: list[tuple[int, bool]], share: float) -> None:
    encoder = RangeEncoder(2)
    for context, bit in bits:
        encoder.bit(context, int(bit)) if context < 2 else encoder.even(int(bit))
    data = encoder.finished()
    for size in (len(data), int(share * len(data))):
        decoder, known = RangeDecoder(2, data[:size]), 0
        try:
            for context, bit in bits:
                assert (decoder.bit(context) if context < 2 else decoder.even()) == bit
                known += 1
        except UncertainError:
            pass
        assert known == len(bits) or size < len(data)


def test_the_wavelets_are_orthonormal_with_eight_vanishing_moments() -> None:
    low, high = np.array(LOW), np.array(HIGH)
    for shift in range(8):
        assert low[2 * shift :] @ low[: 16 - 2 * shift] == pytest.approx(float(shift == 0), abs=1e-15)
        assert low[2 * shift :] @ high[: 16 - 2 * shift] == pytest.approx(0, abs=1e-15)
    for power in range(8):
        assert high @ (np.arange(16) / 15) ** power == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n", [4, 7, 12, 22, 64])
def test_both_bases_are_orthonormal(n: int) -> None:
    field = np.random.default_rng(n).standard_normal((n, n))
    pairs = [(to_wavelets, from_wavelets), *([(to_modes, from_modes)] if n != 22 else [])]
    for forth, back in pairs:
        coefficients = forth(field)
        assert (coefficients**2).sum() == pytest.approx((field**2).sum(), rel=1e-12)
        assert error(back(coefficients), field) < 1e-13
