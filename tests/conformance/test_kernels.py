"""Every kernel on every backend: its cases under all distributions, and arrays that hypothesis makes up.

The quick tests try every case of every variant and tuning, with distributions in turn; the long one tries all of them
with all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import hypothesis.extra.numpy as nps
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashi import kernels
from dashi.errors import AlignmentError, FeatureError
from dashi.kernels._cases import DISTRIBUTIONS, inputs
from dashi.kernels.abi import Kernel
from dashi.runtime._null_device import NullDevice
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.array import Array
from dashi.runtime.conformance import QUICK, Result, Trial, check_one, missing_features, samples, trials

NAMES = kernels.names()
LISTS = [n for n in NAMES if not n.startswith("complex_")]  # those take pairs
IN_PLACE = [k for k in map(kernels.get, LISTS) if k.in_place and k.dtypes == ("f32", "f64")]
ELEMENTWISE = [k.name for k in IN_PLACE if all(o.shape is None for o in k.inputs)]
OTHERS = [name for name in DISTRIBUTIONS if name not in QUICK]


def quick_trials(kernel: Kernel) -> list[Trial]:
    """The trials that the quick tests make. The first tuning gets each case in each variant with inputs of normal
    size, awkward ones, and one of the other distributions in turn; each other tuning gets each case once, variants and
    distributions in turn."""
    every = [*trials(kernel)]
    drawn = sorted({trial.case for trial in every if trial.distribution in OTHERS})

    def is_quick(trial: Trial) -> bool:
        variant, number, name = kernel.dtypes.index(trial.variant), trial.case, trial.distribution
        tuning = [None, *kernel.tunings].index(trial.tuning)
        if tuning <= 1:
            if name not in OTHERS or len(drawn) < len(OTHERS):
                return True
            return name == OTHERS[(drawn.index(number) + variant) % len(OTHERS)]
        in_turn = name not in QUICK or not kernel.portable or name == QUICK[(number // 2 + tuning) % 2]
        return in_turn and variant == (number + tuning) % len(kernel.dtypes)

    chosen = [trial for trial in every if is_quick(trial)]
    # Kernels of more variants than cases: the smallest case of those that no turn came to.
    met = {(trial.tuning, trial.variant) for trial in chosen}
    missed = {
        (trial.tuning, trial.variant): trial for trial in reversed(every) if (trial.tuning, trial.variant) not in met
    }
    return [*chosen, *missed.values()]


def results_of(device: VulkanDevice, kernel: Kernel, chosen: Iterable[Trial]) -> list[Result]:
    """What comes of trials of a kernel; what the device gets wrong fails the test."""
    missing = [missing_features(device, kernel, variant) for variant in kernel.dtypes]
    if all(missing):
        pytest.skip(f"this device lacks {', '.join(missing[0])}")
    by_trial = samples(kernel)
    results = [check_one(device, kernel, trial, by_trial=by_trial) for trial in chosen]
    wrong = [
        f"{r.variant} case {r.case} ({r.shapes}) {r.distribution} {r.tuning}: {r.message}" for r in results if not r.ok
    ]
    assert not wrong, "\n".join(wrong)
    return results


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_gives_the_same_bits_on_vulkan_as_on_numpy(name: str, vulkan: VulkanDevice) -> None:
    kernel = kernels.get(name)
    results = results_of(vulkan, kernel, quick_trials(kernel))
    assert any(not r.skipped for r in results)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_gives_the_same_bits_with_every_tuning_under_every_distribution(
    name: str, vulkan: VulkanDevice
) -> None:
    kernel = kernels.get(name)
    quick = {*quick_trials(kernel)}
    rest = [trial for trial in trials(kernel) if trial not in quick]
    assert len(results_of(vulkan, kernel, rest)) == len(rest)


def test_the_quick_tests_leave_out_no_case_of_a_variant_or_tuning_and_no_distribution() -> None:
    for kernel in map(kernels.get, NAMES):
        every, chosen = [*trials(kernel)], quick_trials(kernel)
        for pair in ("variant case", "tuning case", "tuning variant", "distribution variant"):
            both = attrgetter(*pair.split())
            assert {*map(both, chosen)} == {*map(both, every)}, (kernel.name, pair)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_is_planned_and_recorded_without_a_device(name: str) -> None:
    kernel = kernels.get(name)
    with NullDevice() as null:
        chosen = [*trials(kernel, quick=True)] or [*trials(kernel)]
        results = [check_one(null, kernel, trial) for trial in chosen if trial.distribution != QUICK[1]]
    assert results
    assert all(r.ok for r in results), [r.message for r in results if not r.ok]


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_writes_nothing_beside_the_view_that_it_is_given(name: str, vulkan: VulkanDevice) -> None:
    kernel = kernels.get(name)
    variant = kernel.dtypes[0]
    case = next(c for c in kernel.cases if all(math.prod(shape) for shape in c.shapes.values()))
    arrays = [vulkan.array(values) for values in inputs(kernel, case, variant, "normal", 0).values()]
    scalars: Any = case.scalars
    try:
        alone = vulkan.bind(kernel, *arrays, **scalars)
    except FeatureError as error:
        pytest.skip(error.what)
    wholes = [vulkan.full(vulkan.part_alignment + out.nbytes + 64, 0xA5, np.uint8) for out in alone.outputs]
    views = [view_in(whole, out) for whole, out in zip(wholes, alone.outputs, strict=True)]
    if any(out.dtype.size < 4 and out.nbytes % 16 for out in alone.outputs):
        with pytest.raises(AlignmentError, match="are written 16 bytes at a time"):
            vulkan.bind(kernel, *arrays, out=views, **scalars)
        return
    with vulkan.program([alone, vulkan.bind(kernel, *arrays, out=views, **scalars)]) as program:
        program.run()
    for out, view, whole in zip(alone.outputs, views, wholes, strict=True):
        assert (np.delete(whole.numpy(), np.s_[view.offset : view.offset + view.nbytes]) == 0xA5).all()
        assert not kernel.portable or view.numpy().tobytes() == out.numpy().tobytes()


def view_in(whole: Array, like: Array) -> Array:
    """A view into bytes, not at their beginning, in the shape and type of an array."""
    start = whole.device.part_alignment
    return whole[start : start + like.nbytes].view(like.dtype).reshape(like.shape)


def any_bits(dtype: type) -> st.SearchStrategy[np.ndarray]:
    """Arrays of any length up to a few workgroups, any bit pattern: NaN payloads, subnormals and all."""
    words = np.uint32 if dtype is np.float32 else np.uint64
    return nps.arrays(words, st.integers(1, 600)).map(lambda a: a.view(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ELEMENTWISE)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_elementwise_kernels_agree_on_any_bits(
    name: str, dtype: type, data: st.DataObject, vulkan: VulkanDevice
) -> None:
    kernel = kernels.get(name)
    first = data.draw(any_bits(dtype))
    arrays = [first] + [np.roll(first, 7 * i) for i in range(1, len(kernel.inputs))]
    scalars = _scalars(kernel, data)
    expected = kernel.reference(*arrays, **{k: dtype(v) if isinstance(v, float) else v for k, v in scalars.items()})
    got = vulkan.run(name, *arrays, **scalars).numpy()
    assert got.tobytes() == np.asarray(expected).tobytes()


def _scalars(kernel: Kernel, data: st.DataObject) -> dict[str, Any]:
    return dict(data.draw(st.sampled_from([dict(case.scalars) for case in kernel.cases])))
