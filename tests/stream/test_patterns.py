"""The three placement patterns: several devices give the bits of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from dashi import errors
from dashi.runtime import Array, Device, open_device
from dashi.runtime._steps import AnyStep
from dashi.stream import Field, OpSpec, PayloadSchema
from dashi.stream._blocks import parts_of
from dashi.stream.patterns import BlockColumns, BlockRows, Consensus, DataParallel
from dashi.types import Cost

RNG = np.random.default_rng(64)


@pytest.fixture
def devices(vulkan: Device) -> Iterator[list[Device]]:
    """Two logical devices of the software driver, NumPy's, and the first once more."""
    with open_device("vulkan:0") as other, open_device("cpu") as cpu:
        yield [vulkan, cpu, other, vulkan]
        assert not getattr(getattr(other, "instance", None), "messages", None)


@pytest.mark.parametrize(("dtype", "k"), [(np.float32, 64 * 70 + 5), (np.float64, 257)])
def test_blocks_of_rows_and_columns_have_the_bits_of_gemv(
    devices: list[Device], dtype: type[np.floating], k: int
) -> None:
    matrix, x = RNG.standard_normal((k, 37)).astype(dtype), RNG.standard_normal(k).astype(dtype)
    expected = devices[1].run("gemv", x, matrix).numpy()
    for count in (1, 4):
        with BlockRows(devices[:count], matrix) as rows, BlockColumns(devices[:count], matrix) as columns:
            assert all(part.start % 64 == 0 for part in rows.parts)
            for _ in range(2):
                assert np.array_equal(rows.apply(x), expected)
                assert np.array_equal(columns.apply(x), expected)
            assert np.array_equal(rows.apply(-x), devices[1].run("gemv", -x, matrix).numpy())


def test_sums_of_runs_are_exchanged_as_they_are(devices: list[Device]) -> None:
    """A run whose sum is below the threshold of flushing still counts: exchanged flushed, the bits would differ."""
    tiny = np.float32(2.0**-103)
    x, matrix = np.zeros(192, np.float32), np.zeros((192, 1), np.float32)
    # Runs 0 and 1 cancel down to 2^-103 each; together they are above the threshold.
    for run in (0, 64):
        x[run : run + 2] = 1.0
        matrix[run, 0], matrix[run + 1, 0] = np.float32(2.0**-90) + tiny, -np.float32(2.0**-90)
    expected = devices[1].run("gemv", x, matrix).numpy()
    assert expected[0] == 2 * tiny
    flushed = devices[1].run("gemv_batched", x.reshape(3, 64), matrix.reshape(3, 64, 1)).numpy()
    assert (flushed == 0).all()
    with BlockRows(devices[:3], matrix) as rows:
        assert np.array_equal(rows.apply(x), expected)


@pytest.mark.parametrize("reduction", ["reduce_max", "reduce_min", "reduce_sum", "reduce_sumsq"])
@pytest.mark.parametrize("size", [300, 64 * 64 * 2 + 17])
def test_every_device_is_told_the_reduction_of_all(devices: list[Device], reduction: str, size: int) -> None:
    x = RNG.standard_normal(size).astype(np.float32)
    with_nan = x.copy()
    with_nan[size // 2] = np.nan
    with Consensus(devices, reduction, size) as consensus:  # type: ignore[arg-type]
        for values in (x, x[::-1].copy(), with_nan):
            expected = devices[1].run(reduction, values).numpy()
            told = consensus.apply(values)
            assert len(told) == 4
            for one in told:
                assert np.array_equal(one.view(np.uint32), expected.view(np.uint32))


@dataclass(frozen=True)
class RowsTimes:
    """Rows times a matrix that is the same everywhere, and their softmax."""

    spec: OpSpec = field(default_factory=lambda: OpSpec("rows times", 0, 1))
    reads: tuple[str, ...] = ("z", "A")

    def makes(self, schema: PayloadSchema) -> Mapping[str, Field]:
        return {"y": Field((schema["z"].shape[0], schema["A"].shape[1])), "p": schema["z"]}

    def cost(self, schema: PayloadSchema) -> Cost:
        return Cost()

    def load(self, device: Device) -> Mapping[str, Array]:
        return {}

    def bind(
        self, device: Device, constants: Mapping[str, Array], inputs: Mapping[str, Array], outputs: Mapping[str, Array]
    ) -> Sequence[AnyStep]:
        product = device.bind("matmul", inputs["z"], inputs["A"], out=outputs["y"])
        return [product, device.bind("softmax", inputs["z"], out=outputs["p"])]


def test_data_parallel_rows_have_the_bits_of_one_device(devices: list[Device]) -> None:
    schema = PayloadSchema({"z": Field((13, 40)), "A": Field((40, 9))})
    payload = {name: RNG.standard_normal(form.shape).astype(np.float32) for name, form in schema.items()}
    results = []
    for count in (1, 2, 4):
        with DataParallel(devices[:count], [RowsTimes()], schema, split=["z"], joined=["y", "p"]) as parallel:
            assert [part.size for part in parallel.parts] == {1: [13], 2: [6, 7], 4: [3, 3, 3, 4]}[count]
            results += [parallel.apply(payload) for _ in range(2)]
    assert results[0]["y"].shape == (13, 9)
    for result in results[1:]:
        for name in ("y", "p"):
            assert np.array_equal(result[name].view(np.uint32), results[0][name].view(np.uint32))


def test_what_does_not_fit_is_refused(devices: list[Device]) -> None:
    with pytest.raises(errors.InputError, match=r"100 cannot be cut into 3 parts .* of 64\. Fix: .* 2 at most"):
        parts_of(100, 3, 64)
    with pytest.raises(errors.InputError, match=r"cannot be cut into 0 parts"):
        BlockColumns([], np.zeros((4, 4), np.float32))
    with pytest.raises(errors.ShapeError, match=r"`matrix` has the shape \(4,\)\. Fix: pass an array of two axes"):
        BlockRows(devices[:1], np.zeros(4, np.float32))
    with pytest.raises(errors.DTypeError, match=r"`matrix` has elements of int32"):
        BlockRows(devices[:1], np.zeros((4, 4), np.int32))
    with pytest.raises(errors.InputError, match=r"reduction='mean' is none of 'reduce_max'"):
        Consensus(devices[:1], "mean", 64)  # type: ignore[arg-type]
    with BlockColumns(devices[:1], np.zeros((4, 4), np.float32)) as columns:
        with pytest.raises(errors.ShapeError, match=r"`x` has the shape \(5,\), not \(4,\)"):
            columns.apply(np.zeros(5, np.float32))
        with pytest.raises(errors.DTypeError, match=r"`x` has elements of float64, not of f32"):
            columns.apply(np.zeros(4))
    schema = {"z": Field((13, 40)), "A": Field((40, 9))}
    with pytest.raises(errors.ShapeError, match=r"the fields to split, z, A, have not one number of rows"):
        DataParallel(devices[:1], [RowsTimes()], schema, split=["z", "A"], joined=["y"])
    with pytest.raises(errors.InputError, match=r"no op makes the field 'q'"):
        DataParallel(devices[:1], [RowsTimes()], schema, split=["z"], joined=["q"])
