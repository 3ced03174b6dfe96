"""Arrays that are parts of others, and results that come back with a program while the next one runs."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.errors import AlignmentError, InputError, ShapeError
from dashi.runtime.device import Device


def test_parts_share_the_memory_of_the_whole(device: Device) -> None:
    whole = device.array(np.arange(256, dtype=np.uint32))
    pitch = device.part_alignment
    second = device.part(whole, pitch, 4)
    assert np.array_equal(second.numpy(), np.arange(pitch // 4, pitch // 4 + 4))
    second.write(np.full(4, 7, np.uint32))
    assert (whole.numpy()[pitch // 4 : pitch // 4 + 4] == 7).all()
    assert whole.numpy()[pitch // 4 + 4] == pitch // 4 + 4


def test_a_part_may_have_another_shape_and_type(device: Device) -> None:
    whole = device.array(np.arange(6, dtype=np.float32))
    assert np.array_equal(device.part(whole, 0, (2, 3)).numpy(), [[0, 1, 2], [3, 4, 5]])
    assert device.part(whole, 0, 6, np.uint32).numpy()[1] == np.float32(1).view(np.uint32)


def test_kernels_write_their_results_into_parts(device: Device) -> None:
    pitch = device.part_alignment
    record = device.array(np.full(4 * pitch, 255, np.uint8))
    x = device.array(np.arange(9, dtype=np.float32))
    sums = [device.part(record, i * pitch, 1, np.float32) for i in range(3)]
    with device.program([device.bind("reduce_sum", x, out=s) for s in sums[:2]]) as program:
        program.run()
    assert [float(s.numpy()[0]) for s in sums[:2]] == [36.0, 36.0]
    assert (record.numpy()[2 * pitch :] == 255).all()


def test_a_part_keeps_the_whole_alive(device: Device) -> None:
    part = device.part(device.array(np.arange(64, dtype=np.float32)), 0, 8)
    for _ in range(5):
        device.array(np.zeros(64, np.float32))  # would take the freed memory
    assert np.array_equal(part.numpy(), np.arange(8))


def test_overlap_is_seen_and_refused(device: Device) -> None:
    pitch = device.part_alignment
    whole = device.empty(4 * pitch, np.uint8)
    low, high = device.part(whole, 0, pitch // 4, np.float32), device.part(whole, pitch, pitch // 4, np.float32)
    assert not low.overlaps(high)
    assert low.overlaps(whole)
    values = device.array(np.ones((2, 2), np.float32))
    both = device.part(whole, 0, (2, 2), np.float32)
    with pytest.raises(InputError, match="cannot write over its own operands"):
        device.bind("gemm_tiled", both, values, out=device.part(whole, 0, (2, 2), np.float32))


@pytest.mark.parametrize("offset", [1, 8])
def test_a_part_starts_where_descriptors_can(device: Device, offset: int) -> None:
    whole = device.empty(1024, np.uint8)
    with pytest.raises(AlignmentError, match=rf"cannot start at byte {offset} on .* Fix: start it at a multiple of"):
        device.part(whole, offset, 4)


@pytest.mark.parametrize(("offset", "shape"), [(0, 1025), (1024, 1), (-256, 4), (0, -1)])
def test_a_part_lies_within_the_whole(device: Device, offset: int, shape: int) -> None:
    with pytest.raises(ShapeError, match=r"are not within .* Fix: "):
        device.part(device.empty(1024, np.uint8), offset, shape)


def test_what_is_fetched_is_of_the_run_that_was_waited_for(device: Device) -> None:
    x = device.array(np.ones(5, np.float32))
    double = device.bind("scale", x, out=device.empty(5), a=2.0)
    again = device.bind("scale", double.outputs[0], out=x, a=1.0)
    with device.program([double, again], fetch=[x]) as first, device.program([double, again], fetch=[x]) as second:
        one, two = first.submit(), second.submit()
        one.wait()
        assert (first.fetched(x) == 2).all()
        two.wait()
        assert (second.fetched(x) == 4).all()
        assert (first.fetched(x) == 2).all()
