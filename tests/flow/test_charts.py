"""Claims about the filtered model: two flows that differ below its filter have one future there, and only there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.flow import Flow
from dashi.flow._charts import TWINS, DegenerateChart, Twin, les_chart, ternary
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device

FLOW = Flow(n=32, nu=2e-3, dt=0.02)


def chart(device: Device, twin: Twin, *, host_fft: bool, steps: int = 200) -> DegenerateChart:
    return les_chart(FLOW, device=device, coarse=16, twin=twin, spin_up=20, steps=steps, interval=20, host_fft=host_fft)


@pytest.fixture(scope="module", params=TWINS)
def made(request: pytest.FixtureRequest) -> Any:
    from dashi.runtime._cpu_device import CpuDevice

    with CpuDevice() as device:
        yield chart(device, request.param, host_fft=True)


def test_the_filtered_model_cannot_tell_the_two_apart(made: DegenerateChart) -> None:
    assert made.one_image
    assert made.one_future


def test_they_have_the_same_spectrum_and_other_fine_observables(made: DegenerateChart) -> None:
    np.testing.assert_allclose(made.spectrum[0], made.spectrum[1], rtol=1e-5, atol=1e-12)
    assert not np.allclose(made.fields[0], made.fields[1])
    for name, (a, b) in made.observables.items():
        assert a != pytest.approx(b, rel=1e-3), name


def test_their_true_futures_differ_above_the_filter_scale(made: DegenerateChart) -> None:
    assert made.apart[0] == pytest.approx(1, abs=1e-6)
    assert made.apart[-1] < 0.98
    assert (made.model[:, 0] > 0.999).all()
    # One future cannot be right for both.
    assert made.model[:, -1].min() < made.apart[-1] + 0.5 * (1 - made.apart[-1])


def test_a_chart_of_the_fine_part_tells_them_apart(made: DegenerateChart) -> None:
    assert made.trits.dtype == np.int8
    assert set(np.unique(made.trits)) == {-1, 0, 1}
    assert made.trits_apart > 0.5
    assert made.anchors_apart > 0.5


def test_on_vulkan_a_flipped_field_has_the_same_support_and_the_other_sign(vulkan: VulkanDevice) -> None:
    there = chart(vulkan, "flip", host_fft=False, steps=20)
    assert there.one_image
    assert there.one_future
    assert there.trits_apart == 1.0
    np.testing.assert_array_equal(there.trits[0], -there.trits[1])


def test_the_ternary_chart_keeps_what_is_strong() -> None:
    field = np.array([[3.0, -3.0, 0.1], [0.0, -0.1, 0.2], [0.1, 0.1, 0.1]])
    np.testing.assert_array_equal(ternary(field), [[1, -1, 0], [0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("wrong", [{"coarse": 32}, {"steps": 50}, {"twin": "turn"}])
def test_a_filter_that_filters_nothing_is_refused(wrong: dict[str, Any]) -> None:
    from dashi.runtime._cpu_device import CpuDevice

    given: dict[str, Any] = {"coarse": 16, "steps": 40, "interval": 20, **wrong}
    with CpuDevice() as device, pytest.raises(InputError):
        les_chart(FLOW, device=device, host_fft=True, **given)


def test_the_script_draws_a_figure_and_tells_what_was_found(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script = Path(__file__).parents[2] / "benchmarks" / "les_chart.py"
    words = "--n 32 --coarse 16 --steps 40 --device cpu --host-fft --out chart.png".split()
    done = subprocess.run([sys.executable, str(script), *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "the filtered model's futures have the same bits: True" in done.stdout
    assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"
