"""Ternary fields on a device: packings lose nothing, numbers about them are exact, support never grows unasked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dashi.core.carriers.carrier import PACKINGS, Carrier, Counts, Defect, Packing, require_field
from dashi.errors import DashiError, DTypeError, InputError, ShapeError
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device

SHARED_DEVICE = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
Field = NDArray[np.int8]


@st.composite
def fields(draw: st.DrawFn) -> Field:
    shape = draw(st.one_of(st.tuples(st.integers(0, 70)), st.tuples(st.integers(1, 12), st.integers(1, 40))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.1, 0.6, 1.0]))
    signs = 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1
    return np.where(rng.random(shape) < density, signs, 0).astype(np.int8)


packings = st.sampled_from(PACKINGS)


@SHARED_DEVICE
@given(field=fields(), first=packings, second=packings)
def test_every_packing_holds_the_field_without_loss(
    device: Device, field: Field, first: Packing, second: Packing
) -> None:
    carrier = Carrier.from_numpy(device, field, first).pack(second)
    assert carrier.packing == second
    assert carrier.numpy().dtype == np.int8
    assert np.array_equal(carrier.numpy(), field)


@SHARED_DEVICE
@given(field=fields(), packing=packings)
def test_a_field_is_support_times_sign(device: Device, field: Field, packing: Packing) -> None:
    carrier = Carrier.from_numpy(device, field, packing)
    support, signs = carrier.support(), carrier.signs()
    assert np.array_equal(support, field != 0)
    assert np.array_equal(signs, field[field != 0])
    assert np.array_equal(Carrier.from_parts(device, support, signs, packing).numpy(), field)


@SHARED_DEVICE
@given(field=fields(), seed=st.integers(0, 2**32 - 1), packing=packings, other=packings)
def test_numbers_about_fields_are_exact(
    device: Device, field: Field, seed: int, packing: Packing, other: Packing
) -> None:
    second = np.random.default_rng(seed).integers(-1, 2, field.shape, dtype=np.int8)
    a, b = Carrier.from_numpy(device, field, packing), Carrier.from_numpy(device, second, other)
    apart = np.abs(second.astype(int) - field)
    counts = a.popcount()
    assert counts == Counts(int((field > 0).sum()), int((field < 0).sum()), int((field == 0).sum()))
    assert counts.support == np.count_nonzero(field)
    assert a.dot(b) == b.dot(a) == int((field.astype(int) * second).sum())
    defect = a.defect(b)
    assert defect == Defect(int((apart > 0).sum()), int((apart > 1).sum()))
    assert (defect.total, defect.most) == (int(apart.sum()), int(apart.max(initial=0)))
    k = int(np.count_nonzero(field))
    assert a.description_length(4, 3) == field.size + k + 4 * k + 24
    assert a.description_length() == field.size + k


def test_packings_take_the_bytes_that_they_promise(device: Device) -> None:
    field = np.random.default_rng(0).integers(-1, 2, (100, 160), dtype=np.int8)
    sizes = {packing: Carrier.from_numpy(device, field, packing).nbytes for packing in PACKINGS}
    assert sizes["trits2"] == field.size // 4
    assert sizes["trits5"] == field.size // 5
    # Two planes of one bit, a rank for every block of 512 and superblock of 16,384, and the count.
    assert sizes["planes"] == 4 * (500 + 500 + 32 + 1 + 1)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_admissibility_accepts_rejects_and_projects(device: Device, kind: Any) -> None:
    below = np.nextafter(kind(0.35), kind(0))
    x = np.array([[0.35, below, -0.35], [-below, np.nan, -np.inf]], kind)
    assert Carrier.admit(device, x, 0.35).numpy().tolist() == [[1, 0, -1], [0, 0, -1]]
    on_device = Carrier.admit(device, device.array(x), 0.35, "planes")
    assert on_device.numpy().tolist() == [[1, 0, -1], [0, 0, -1]]


@SHARED_DEVICE
@given(field=fields(), packing=packings, radius=st.integers(0, 2), eta=st.integers(1, 4))
def test_majority_stays_on_the_support_in_every_packing(
    device: Device, field: Field, packing: Packing, radius: int, eta: int
) -> None:
    carrier = Carrier.from_numpy(device, field, packing)
    result = carrier.majority(radius, eta)
    assert result.packing == packing
    assert not result.grown
    assert not np.any(result.numpy()[field == 0])
    sums = np.zeros(field.shape, int)
    for shift in np.ndindex(*(2 * radius + 1,) * field.ndim):
        sums += np.roll(field, [s - radius for s in shift], tuple(range(field.ndim)))
    expected = np.where((field != 0) & (np.abs(sums) >= eta), np.sign(sums), 0)
    assert np.array_equal(result.numpy(), expected)


def test_growth_is_asked_for_and_then_declared(device: Device) -> None:
    field = np.zeros((5, 5), np.int8)
    field[2, 2] = -1
    carrier = Carrier.from_numpy(device, field)
    assert np.array_equal(carrier.majority().numpy(), field)
    grown = carrier.majority(grow=True)
    assert grown.grown
    assert grown.popcount() == Counts(0, 9, 16)
    # The mark stays with what is made of it.
    assert grown.majority().grown
    assert grown.pack("planes").grown
    assert grown.annihilate_pairs().grown


def test_weights_decide_by_neighbour(device: Device) -> None:
    field = np.array([1, -1, 1, 0, -1], np.int8)
    carrier = Carrier.from_numpy(device, field)
    copies_right = carrier.majority(weights=[0, 0, 1])
    assert copies_right.numpy().tolist() == [-1, 1, 0, 0, 1]
    ignores = carrier.majority(eta=4, weights=[1, 3, 1])
    assert ignores.numpy().tolist() == [0, 0, 0, 0, 0]


@SHARED_DEVICE
@given(field=fields(), packing=packings, seed=st.integers(0, 2**32 - 1))
def test_annihilation_only_projects_to_zero(device: Device, field: Field, packing: Packing, seed: int) -> None:
    coherence = np.random.default_rng(seed).random(field.shape).astype(np.float32)
    carrier = Carrier.from_numpy(device, field, packing)
    once = carrier.annihilate(coherence, 0.5)
    assert np.array_equal(once.numpy(), np.where(coherence > 0.5, field, 0))
    assert once.annihilate(coherence, 0.5).defect(once) == Defect(0, 0)
    pairs = carrier.annihilate_pairs()
    assert np.all((pairs.numpy() == field) | (pairs.numpy() == 0))


def test_integers_of_any_width_are_taken_and_the_given_array_is_left_alone(device: Device) -> None:
    for kind in (np.int64, np.int32, np.uint8):
        field = np.array([1, 0, 1], kind)
        assert Carrier.from_numpy(device, field).numpy().tolist() == [1, 0, 1]
    own = np.array([1, -1], np.int8)
    assert require_field(own) is not own
    assert Carrier.from_numpy(device, [[1, 0], [-1, 0]]).shape == (2, 2)


CPU = CpuDevice()
FIELD = Carrier.from_numpy(CPU, np.array([1, 0, -1], np.int8))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: Carrier.from_numpy(CPU, np.array([0.5, 1.0])),
            DTypeError,
            (
                "a ternary field holds integers, not float64. "
                "Fix: project real values with Carrier.admit(device, x, tau), or convert with .astype(np.int8)."
            ),
        ),
        (
            lambda: Carrier.from_numpy(CPU, np.array([[0, 1], [2, 0]])),
            InputError,
            "a ternary field holds -1, 0 and +1, but site (1, 0) is 2. Fix: pass trits.",
        ),
        (
            lambda: Carrier.from_numpy(CPU, np.array([255], np.uint8)),
            InputError,
            "a ternary field holds -1, 0 and +1, but site (0,) is 255. Fix: pass trits.",
        ),
        (
            lambda: FIELD.pack("trits3"),  # type: ignore[arg-type]
            InputError,
            "there is no packing 'trits3'. Fix: pass one of trits2, trits5, planes.",
        ),
        (
            lambda: FIELD.dot(Carrier.from_numpy(CPU, np.zeros(4, np.int8))),
            ShapeError,
            "a field of shape (3,) does not compare with one of shape (4,). Fix: pass fields of one shape.",
        ),
        (
            lambda: Carrier.from_parts(CPU, np.array([True, False]), [1, 1]),
            ShapeError,
            (
                "1 sites have support, but the signs have shape (2,). "
                "Fix: pass one sign for each supported site, in the order of the sites."
            ),
        ),
        (
            lambda: Carrier.from_parts(CPU, np.array([True, False]), [0]),
            InputError,
            "a sign is 0. Fix: pass +1 or -1; a site without sign is not in the support.",
        ),
        (
            lambda: Carrier.from_parts(CPU, np.array([1, 0]), [1]),
            DTypeError,
            "a support is an array of booleans, not of int64. Fix: pass field != 0.",
        ),
        (
            lambda: FIELD.majority(weights=[0.5, 1.0, 0.5]),
            DTypeError,
            "weights are integers, not float64. Fix: scale and round them: sums of integers are exact.",
        ),
        (
            lambda: Carrier.admit(CPU, np.zeros(3, np.float32), -1.0),
            InputError,
            "a threshold of -1.0 admits nothing sensible. Fix: pass tau >= 0.",
        ),
    ],
)
def test_what_is_no_field_is_refused_with_a_fix(call: Any, kind: type[DashiError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_fields_of_two_devices_do_not_mix() -> None:
    with CpuDevice() as other, pytest.raises(InputError, match="the other field lives on"):
        FIELD.defect(Carrier.from_numpy(other, np.zeros(3, np.int8)))


def test_a_carrier_says_what_it_is() -> None:
    assert repr(FIELD).startswith("Carrier(shape=(3,), trits2, 4 bytes on 'NumPy")
