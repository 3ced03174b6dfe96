"""Arrays of bf16, a type that NumPy lacks: float32 on the host, words of 16 bits in memory."""

from __future__ import annotations

import numpy as np

from dashi.runtime.device import Device
from dashi.types import dtype


def test_bf16_is_a_type_of_its_own_that_numpy_lacks(device: Device) -> None:
    ours = dtype("bf16")
    assert ours == "bf16" == ours.name
    assert ours == dtype("bfloat16")
    assert str(ours) == "bfloat16"
    assert ours not in (np.float32, np.uint16, np.float16)
    assert (ours.size, ours.numpy, ours.stored) == (2, np.float32, np.uint16)
    values = np.array([1.0, 0.1, -3e38, np.inf, np.nan, 2.0**-130, 1.00390625, 1.01171875], np.float32)
    a = device.array(values, dtype="bf16")
    rounded = np.array([1.0, 0.10009765625, -3.004e38, np.inf, np.nan, 2.0**-130, 1.0, 1.015625], np.float32)
    assert np.allclose(a.numpy(), rounded, rtol=1e-4, atol=0, equal_nan=True)
    assert a.numpy().dtype == np.float32
    words = a.view("u16").numpy()
    assert words[[0, 1, 3, 6, 7]].tolist() == [0x3F80, 0x3DCD, 0x7F80, 0x3F80, 0x3F82]  # ties go to even
    assert a.nbytes == 16
    again = device.array(words).view("bf16")
    assert again.numpy().tobytes() == a.numpy().tobytes()
    assert a.astype("bf16").view("u16").numpy().tolist() == words.tolist()


def test_bf16_arrays_are_written_fed_and_fetched_as_float32(device: Device) -> None:
    a = device.zeros((2, 3), "bf16")
    a[...] = 1.25
    a[1:2].write(np.full((1, 3), -2, np.float32))
    assert a.numpy().tolist() == [[1.25] * 3, [-2] * 3]
    device.upload(a, np.full((2, 3), 0.5, np.float32)).wait()
    assert device.download(a).result().tolist() == [[0.5] * 3] * 2
    step = device.bind("add", a, a)
    (total,) = step.outputs
    assert total.dtype == "bf16"
    with device.program([device.fill_step(a, 3), step], fetch=[total]) as program:
        program.run()
        assert program.fetched(total).tolist() == [[6.0] * 3] * 2
    with device.program([step], feed=[a], fetch=[total]) as program:
        program.submit(feed={a: np.full((2, 3), 1.5, np.float32)}).wait()
        assert program.fetched(total).tolist() == [[3.0] * 3] * 2
