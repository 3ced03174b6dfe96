"""Arrays on a device feel like arrays: element types, views, assignment, closing, and what they say of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Array, Device, open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.types import DTYPES, dtype


def counted(device: Device, *shape: int) -> Array:
    """0, 1, 2, ... in that shape, as float32."""
    return device.array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


# ---- element types


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bf16"])
def test_an_element_type_is_numpys(name: str) -> None:
    ours = dtype(name)
    assert ours == ours.numpy
    assert ours.numpy == ours
    assert ours == ours.numpy.type
    assert ours == ours.numpy.name == str(ours)
    assert np.dtype(ours) is ours.numpy  # pyright: ignore[reportArgumentType, reportCallIssue]
    as_key: dict[Any, int] = {ours: 1}
    assert as_key[ours.numpy] == 1
    assert np.zeros(2, ours).dtype == ours  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert ours.itemsize == ours.size == ours.numpy.itemsize
    assert [other for other in DTYPES.values() if other == ours] == [ours]


@pytest.mark.parametrize("other", [None, "complex64", "nonsense", object(), 3, np.dtype(">f4"), [1]])
def test_an_element_type_equals_nothing_else(other: Any) -> None:
    assert dtype("f32") != other
    assert dtype("f64") != other


def test_an_array_has_the_element_type_that_was_asked_for(device: Device) -> None:
    for array in (device.empty(3, np.int32), device.zeros((3,), dtype="i32"), device.array([1, 2, 3], dtype=np.int32)):
        assert array.dtype == np.int32
        assert array.dtype == "int32"
        assert array.numpy().dtype == array.dtype
    assert device.empty(3).dtype == device.zeros(3).dtype == device.full(3, 1).dtype == np.float32
    assert device.array([1.0]).dtype == np.float64


# ---- constructors


def test_arrays_start_with_zeros_or_one_number(device: Device) -> None:
    assert device.zeros((2, 3)).numpy().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert device.full(3, 2.5, dtype=np.float64).numpy().tolist() == [2.5] * 3
    assert device.full((), 7, np.uint8).item() == 7
    assert device.zeros((0, 4)).numpy().shape == (0, 4)


def test_values_are_converted_where_a_type_is_named(device: Device) -> None:
    assert device.array([1, 2], dtype=np.float32).numpy().tolist() == [1, 2]
    assert device.array(np.array([1.5, -1.5]), dtype="f16").dtype == np.float16
    assert device.array(np.array([0, 3, 0]), dtype=bool).numpy().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda d: d.array([300], dtype=np.uint8), errors.InputError, "out of bounds for uint8"),
        (lambda d: d.array([1j], dtype=np.float32), errors.DTypeError, "pairs of real ones"),
        (lambda d: d.array(np.array([1j]), dtype=np.float32), errors.DTypeError, "pairs of real ones"),
        (lambda d: d.full(3, 1.5, np.int32), errors.DTypeError, "values of float64 cannot be written to an array of"),
        (lambda d: d.full(3, -1, np.uint8), errors.InputError, "out of bounds for uint8"),
        (lambda d: d.full(3, [1, 2]), errors.ShapeError, "values of shape (2,) cannot be written to a part of shape"),
        (lambda d: d.empty(3, dtype="float128x"), errors.DTypeError, "dashi has no element type"),
    ],
)
def test_values_that_a_type_cannot_hold_are_refused(device: Device, make: Any, kind: type, said: str) -> None:
    with pytest.raises(kind) as caught:
        make(device)
    assert said in str(caught.value)
    assert "Fix: " in str(caught.value)


# ---- truth values


def test_truth_values_are_stored_as_bytes_and_come_back(device: Device) -> None:
    truth = np.array([[True, False, True], [False, False, True]])
    array = device.array(truth)
    assert array.dtype == np.bool_
    assert array.nbytes == 6
    assert array.numpy().dtype == np.bool_
    assert np.array_equal(array.numpy(), truth)
    assert array.view(np.uint8).numpy().tolist() == [[1, 0, 1], [0, 0, 1]]
    assert device.array(np.array([0, 2], np.uint8)).view(bool).numpy().tolist() == [False, True]
    array[0] = False
    assert array.numpy().tolist() == [[False] * 3, [False, False, True]]
    assert array.astype(bool).numpy().tolist() == array.numpy().tolist()
    step = device.bind("copy", array.view(np.uint8))
    with device.program([step], fetch=[array]) as program:
        program.run()
        assert program.fetched(array).dtype == np.bool_
        assert np.array_equal(program.fetched(array), array.numpy())


def test_kernels_of_numbers_take_no_truth_values_and_those_that_choose_do(device: Device) -> None:
    x = device.array(np.arange(3, dtype=np.float32))
    with pytest.raises(errors.DTypeError, match="x is bool, which is no element type here"):
        device.run("tanh", device.zeros(3, bool))
    positive = device.run("greater", x, device.zeros(3))
    assert positive.numpy().tolist() == [False, True, True]
    assert device.run("where", positive, x, device.full(3, 7)).numpy().tolist() == [7, 1, 2]
    assert device.run("logical_not", positive).numpy().tolist() == [True, False, False]


# ---- views


def test_a_reshaped_array_is_the_same_memory(device: Device) -> None:
    a = counted(device, 2, 6)
    assert a.reshape(3, -1).shape == (3, 4)
    assert a.reshape((12,)).shape == a.reshape(-1).shape == (12,)
    assert np.array_equal(a.reshape(4, 3).numpy(), np.arange(12).reshape(4, 3))
    a.reshape(-1).write(np.ones(12, np.float32))
    assert (a.numpy() == 1).all()
    assert counted(device, 1).reshape(()).item() == 0
    assert device.empty((0, 3)).reshape(3, 0).shape == (3, 0)


@pytest.mark.parametrize("shape", [(5,), (-1, -1), (5, -1), (-2, 6), (0, -1)])
def test_a_shape_of_another_size_is_refused(device: Device, shape: Any) -> None:
    with pytest.raises(errors.ShapeError, match=r"cannot have the shape .* Fix: give lengths whose product is 12"):
        counted(device, 2, 6).reshape(shape)


INDICES: dict[str, Any] = {
    "row": np.s_[2],
    "last row": np.s_[-1],
    "rows": np.s_[1:3],
    "all": np.s_[...],
    "rows and dots": np.s_[1:3, ...],
    "from the end": np.s_[-2:],
    "element": np.s_[2, 1, 3],
    "row of a row": np.s_[1, 2],
    "part of a row": np.s_[1, 2, 1:3],
    "some of one": np.s_[1, 0:2],
    "one of some, as an axis": np.s_[1:2, 1:3],
    "dots first": np.s_[3, ..., 2, 1:],
    "whole axes": np.s_[:, :, :],
    "none": np.s_[2:2],
    "none at the end": np.s_[4:],
    "none across": np.s_[:, 1:1, 2],
    "far beyond": np.s_[2:100],
    "one of a long step": np.s_[3::7],
    "numpy's integers": (np.int64(1), np.uint8(2)),
}


@pytest.mark.parametrize("name", INDICES)
def test_a_part_in_one_piece_is_a_view_as_numpy_gives_it(device: Device, name: str) -> None:
    host = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)
    array, index = device.array(host), INDICES[name]
    part = array[index]
    assert part.shape == host[index].shape
    assert np.array_equal(part.numpy(), host[index])
    array[index] = -1
    host[index] = -1
    assert np.array_equal(array.numpy(), host)


@pytest.mark.parametrize("index", [np.s_[:, 1], np.s_[1:3, 1:2], np.s_[0, :, 2], np.s_[:, :, 0:4], np.s_[..., 0]])
def test_a_part_in_many_pieces_is_refused(index: Any) -> None:
    with (
        CpuDevice() as cpu,
        pytest.raises(
            errors.UnsupportedOperationError,
            match=r"does not lie in one piece of memory\. Fix: take whole rows; or copy",
        ),
    ):
        counted(cpu, 4, 3, 5)[index]


@pytest.mark.parametrize(
    ("index", "kind", "said"),
    [
        (4, IndexError, "index 4 is out of bounds for axis 0, which has 4 elements. Fix: use -4 to 3."),
        ((0, -4), IndexError, "index -4 is out of bounds for axis 1"),
        ((0, 0, 0), IndexError, "names more axes than an array of shape (4, 3) has. Fix: name at most 2"),
        ((..., ...), IndexError, "with one ... at most"),
        (np.s_[::2], TypeError, "cannot have the step 2. Fix: take whole ranges"),
        (np.s_[::-1], TypeError, "cannot have the step -1."),
        (np.s_[1.5:], TypeError, "is not a slice of whole numbers"),
        (np.s_[::0], TypeError, "is not a slice of whole numbers"),
        (None, TypeError, "not indexed by NoneType. Fix: use whole numbers and slices"),
        (1.0, TypeError, "not indexed by float"),
        (True, TypeError, "not indexed by bool"),
        ([0, 1], TypeError, "not indexed by list. Fix: use whole numbers and slices; an axis more comes from"),
        (np.array([0, 1]), TypeError, "not indexed by ndarray"),
    ],
)  # fmt: skip
def test_an_index_that_names_no_part_is_a_typed_error(index: Any, kind: type, said: str) -> None:
    with CpuDevice() as cpu, pytest.raises(kind) as caught:
        counted(cpu, 4, 3)[index]
    assert isinstance(caught.value, errors.InputError)
    assert said in str(caught.value)


def test_kernels_take_views_and_write_into_them(device: Device) -> None:
    whole = counted(device, 8, 4)
    device.run("add", whole[1:3], whole[3:5], out=whole[6:8])
    wanted = np.arange(32, dtype=np.float32).reshape(8, 4)
    wanted[6:8] = wanted[1:3] + wanted[3:5]
    assert np.array_equal(whole.numpy(), wanted)


def test_steps_on_parts_of_one_array_see_what_those_before_them_wrote(device: Device) -> None:
    row = counted(device, 8, 64)
    steps = [device.bind("affine", row[i], out=row[i + 1], a=1, b=1) for i in range(7)]
    with device.program(steps) as program:
        program.run()
    assert np.array_equal(row.numpy()[7], np.arange(64) + 7)


def test_a_view_that_shaders_cannot_start_at_is_read_and_written_but_not_bound(device: Device) -> None:
    a = counted(device, 64)
    assert a[5:8].numpy().tolist() == [5, 6, 7]
    a[5] = 50
    assert a[5].item() == 50
    for use in (lambda: device.bind("neg", a[5:8]), lambda: device.bind("neg", a[0:3], out=a[5:8])):
        with pytest.raises(errors.AlignmentError, match=r"starts at byte 20 of its memory, .* Fix: take a part that"):
            use()
    assert device.run("neg", device.array(a[5:8].numpy())).numpy().tolist() == [-50, -6, -7]


def test_results_of_small_elements_are_written_into_whole_vectors_only(device: Device) -> None:
    flags = device.array(np.full(64, 7, np.uint8))
    source = device.zeros(20, np.uint8)
    with pytest.raises(errors.AlignmentError, match=r"are written 16 bytes at a time\. Fix: take a part whose size is"):
        device.run("copy", source, out=flags[16:36])
    device.run("copy", source[:16], out=flags[16:32])
    device.run("copy", device.zeros(9, np.uint8), out=device.full(25, 7, np.uint8)[16:])
    assert flags.numpy().tolist() == [7] * 16 + [0] * 16 + [7] * 32


def test_operands_that_overlap_by_views_are_refused(device: Device) -> None:
    a = counted(device, 16, 4)
    for out in (a[1:9], a[4:12], a[0:8].reshape(8, 4)[1:]):
        with pytest.raises(errors.InputError, match=r"`out` shares only some of its memory with an input\. Fix: "):
            device.bind("scale", a[0 : len(out)] if len(out) == 8 else a[0:7], out=out, a=2)
    with pytest.raises(errors.InputError, match="cannot write over its own operands"):
        device.bind("prefix_scan", a[0:8], out=a[4:12])
    device.run("scale", a[0:8], out=a[0:8], a=2)
    device.run("scale", a[0:8], out=a[8:16], a=1)
    assert np.array_equal(a.numpy()[8:], 2 * np.arange(32).reshape(8, 4))


def test_views_of_bytes_have_another_type(device: Device) -> None:
    a = device.array(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    assert np.array_equal(a.view(np.uint32).numpy(), a.numpy().view(np.uint32))
    assert a.view(np.uint8).shape == (2, 8)
    assert a.view(np.uint8).view("f64").shape == (2, 1)
    with pytest.raises(errors.ShapeError, match=r"has no view as float64\. Fix: its last axis must hold a multiple"):
        a.reshape(4, 1).view(np.float64)
    with pytest.raises(errors.ShapeError, match="has no view"):
        a[0, 0].view(np.float64)


# ---- assignment


def test_parts_are_assigned_numbers_lists_and_arrays_as_in_numpy(device: Device) -> None:
    a, host = device.zeros((4, 4)), np.zeros((4, 4), np.float32)
    for index, values in (
        (np.s_[0], 3), (np.s_[1], [1, 2, 3, 4]), (np.s_[2:4], np.float64(0.5)), (np.s_[2:4], np.full((1, 4), 9, "f4")),
        (np.s_[3, 1:], [[5]][0]), (np.s_[...], np.arange(4, dtype=np.float32)), (np.s_[2:2], 8),
    ):  # fmt: skip
        a[index] = values
        host[index] = values
        assert np.array_equal(a.numpy(), host)


def test_a_part_is_assigned_an_array_of_its_own_device(device: Device) -> None:
    a, b = counted(device, 8, 4), device.full((2, 4), -1)
    a[2:4] = b
    a[6:8] = a[0:2]
    assert a.numpy()[:, 0].tolist() == [0, 4, -1, -1, 16, 20, 0, 4]
    with pytest.raises(errors.InputError, match="share memory"):
        a[0:2] = a[1:3]
    with pytest.raises(errors.ShapeError, match="cannot be written"):
        a[0:3] = b
    with CpuDevice() as other:
        a[0] = other.full(4, 5)
    assert a[0].numpy().tolist() == [5] * 4


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (np.zeros(4), errors.DTypeError, "an array of float64 cannot be written to one of int32"),
        (1.5, errors.DTypeError, "values of float64 cannot be written to an array of int32. Fix: convert them first"),
        ([1.0, 2.0], errors.DTypeError, "values of float64 cannot be written"),
        (1 << 40, errors.InputError, "out of bounds"),
        ([1, 2, 3], errors.ShapeError, "values of shape (3,) cannot be written to a part of shape (4,)"),
        (np.zeros((2, 4), np.int32), errors.ShapeError, "values of shape (2, 4) cannot be written"),
    ],
)
def test_values_that_do_not_fit_a_part_are_refused(values: Any, kind: type, said: str) -> None:
    with CpuDevice() as cpu, pytest.raises(kind) as caught:
        cpu.zeros((2, 4), np.int32)[1] = values
    assert said in str(caught.value)


# ---- sizes, iteration, conversion


def test_sizes_have_numpys_names(device: Device) -> None:
    a = device.zeros((3, 4), np.float64)
    assert (len(a), a.ndim, a.size, a.nbytes) == (3, 2, 12, 96)
    assert device.zeros(()).ndim == 0


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda a: list(a), "is not iterated over: every element would be a transfer of its own. Fix: read it once"),
        (lambda a: bool(a), "is neither true nor false. Fix: ask `array is not None`"),
        (lambda a: len(a[0]), "has no length. Fix: use array.size"),
    ],
)
def test_what_would_hide_a_transfer_is_a_type_error_with_a_fix(device: Device, use: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        use(counted(device, 4))
    assert said in str(caught.value)


def test_one_element_is_a_number(device: Device) -> None:
    number = device.full((1, 1), 2.5)
    assert (number.item(), float(number), int(number)) == (2.5, 2.5, 2)
    for read in (lambda: device.zeros(2).item(), lambda: float(device.zeros(2)), lambda: int(device.zeros(2))):
        with pytest.raises(errors.ShapeError, match="is not one number"):
            read()


def test_element_types_are_converted_by_kernels(device: Device) -> None:
    a = device.array(np.array([1.0, 2.0**-14, 65504.0, 0.1], np.float32))
    half = a.astype(np.float16)
    assert half.dtype == np.float16
    assert np.array_equal(half.numpy(), a.numpy().astype(np.float16))
    assert np.array_equal(half.astype("float32").numpy(), half.numpy().astype(np.float32))
    copy = a.astype(np.float32)
    copy[...] = 0
    assert a.numpy()[0] == 1
    wide = device.array(np.array([-1.9, 300.7, np.nan, 3e9, -np.inf], np.float32))
    assert wide.astype(np.int32).numpy().tolist() == [-1, 300, 0, 2**31 - 1, -(2**31)]
    assert wide.astype(np.uint8).numpy().tolist() == [0, 255, 0, 255, 0]
    assert wide.astype(bool).numpy().tolist() == [True] * 5
    longs = device.array(np.array([2**53 + 1, -(2**40) - 3, 2**32], np.int64))
    assert longs.astype(np.float64).numpy().tolist() == [2**53, -(2**40) - 3, 2**32]
    assert longs.astype(np.int32).numpy().tolist() == [1, -3, 0]
    assert longs.astype(bool).numpy().all()


def test_numpy_takes_an_array_as_a_copy(device: Device) -> None:
    a = counted(device, 3)
    assert np.asarray(a).dtype == np.float32
    assert np.asarray(a, dtype=np.float64).dtype == np.float64
    for copy in (np.array(a, copy=True), np.asarray(a), np.from_dlpack(a, copy=True)):
        copy[...] = -1
    assert np.from_dlpack(a).tolist() == [0, 1, 2]


# ---- closing


@pytest.fixture(params=["cpu", "null", "vulkan:0"])
def any_device(request: pytest.FixtureRequest) -> Any:
    """A device of each kind."""
    return request.getfixturevalue("vulkan") if request.param == "vulkan:0" else open_device(request.param)


def test_a_closed_array_is_refused_but_steps_and_programs_that_use_it_work_on(any_device: Device) -> None:
    x = any_device.array(np.ones(8, np.float32))
    step = any_device.bind("scale", x, out=any_device.empty(8), a=2)
    stored = any_device.program([step], fetch=step.outputs)
    view, out = x[0:4], step.outputs[0]
    x.close()
    x.close()
    out.close()
    later = any_device.program([step])
    for use in (
        x.numpy, lambda: x[0], lambda: x.reshape(2, 4), lambda: any_device.bind("neg", x), lambda: x.overlaps(view),
        lambda: x.write(np.ones(8, np.float32)), lambda: any_device.bind("neg", any_device.empty(8), out=out),
    ):  # fmt: skip
        with pytest.raises(errors.ClosedError, match="this array is closed"):
            use()
    ticket = stored.submit()
    later.run()
    if any_device.info.type != "null":
        assert ticket.fetched(out).tolist() == [2] * 8
        assert view.numpy().tolist() == [1] * 4
    stored.close()
    later.close()


# ---- what they say of themselves


def test_a_small_array_shows_its_values(device: Device) -> None:
    where = device.info.spec
    assert repr(counted(device, 3)) == f"Array([0., 1., 2.], shape=(3,), dtype=float32, device={where!r})"
    assert repr(device.array([[True]])) == f"Array([[ True]], shape=(1, 1), dtype=bool, device={where!r})"
    assert repr(device.empty((0, 2))) == f"Array([], shape=(0, 2), dtype=float32, device={where!r})"
    text = repr(counted(device, 2, 2))
    assert text.splitlines() == [
        "Array([[0., 1.],",
        f"       [2., 3.]], shape=(2, 2), dtype=float32, device={where!r})",
    ]


def test_a_large_array_shows_its_ends_and_reads_no_more(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    a = counted(device, 100, 1000)
    read: list[int] = []
    original = type(device).read
    monkeypatch.setattr(type(device), "read", lambda self, array: (read.append(array.nbytes), original(self, array))[1])
    assert repr(a) == (
        f"Array([[0., 1., 2., ..., 99997., 99998., 99999.]], shape=(100, 1000), dtype=float32, "
        f"device={device.info.spec!r})"
    )
    assert sum(read) == 24


def test_a_repr_never_fails_and_never_waits(vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    a = counted(vulkan, 3)
    with monkeypatch.context() as patch:
        patch.setattr(type(vulkan), "at_work", lambda _: True)
        assert repr(a).startswith("Array(..., shape=(3,)")
    assert not vulkan.at_work()
    a.close()
    assert repr(a).startswith("Array(closed, shape=(3,), dtype=float32")
    with CpuDevice() as cpu:
        b = counted(cpu, 3)
    assert repr(b) == "Array(closed, shape=(3,), dtype=float32, device='cpu')"
    with NullDevice() as null:
        assert repr(null.empty(3)) == "Array(..., shape=(3,), dtype=float32, device='null')"


def test_the_numpy_device_is_at_work_while_its_thread_computes() -> None:
    with CpuDevice() as cpu:
        a = counted(cpu, 3)
        event = cpu.event()
        ticket = cpu.program([]).submit(after=[event])
        assert repr(a).startswith("Array(...,")
        event.signal()
        ticket.wait()
        assert repr(a).startswith("Array([0., 1., 2.]")


def test_errors_describe_arrays_without_reading_them(device: Device) -> None:
    a = device.zeros(100)
    with pytest.raises(errors.ShapeError, match=r"cannot copy Array\(shape=\(100,\), dtype=float32, device="):
        device.copy(a, device.zeros(99))


def test_a_device_waits_for_all_that_was_submitted(device: Device) -> None:
    x = counted(device, 4096)
    with device.program([device.bind("scale", x, out=x, a=1)] * 50) as program:
        ticket = program.submit()
        device.wait()
        assert ticket.done
        assert not device.at_work()
