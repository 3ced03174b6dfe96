"""Claims about decoded rollouts whose parts run apart, as a job: the same files, metrics that say where each part ran,
and no device that is quietly another one."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.core import read_trace
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import DeviceNotFoundError, Interrupted, NoResultError
from dashi.flow.decode._album import Album
from dashi.flow.proxy import Schema
from dashi.flow.proxy.files import save_z
from dashi.runtime import open_device
from dashi.runtime._vulkan_device import VulkanDevice

SCHEMA = Schema(16, 3)
WHERE_AND_WHEN = {"metrics.json", ".dashi-run"}


@pytest.fixture
def files(here: Path) -> dict[str, Path]:
    """A z of two members, and a matrix that turns it."""
    rng = np.random.default_rng(3)
    save_z(here / "z0.npz", SCHEMA, rng.standard_normal((2, SCHEMA.size)))
    turn, _ = np.linalg.qr(rng.standard_normal((SCHEMA.size, SCHEMA.size)))
    np.savez(here / "A.npz", A=turn)
    return {"z0": Path("z0.npz"), "A": Path("A.npz")}


def request(**asked: Any) -> lab.FollowRequest:
    return lab.FollowRequest(**{"steps": 20, "decode_every": 5, "stage_times": False, **asked})


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a run but those that tell where and when it ran."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in WHERE_AND_WHEN]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("observer", ["snapshots", "visualize"])
def test_all_files_are_the_same_wherever_it_decodes(
    files: dict[str, Path], vulkan: VulkanDevice, observer: str
) -> None:
    asked = {**files, "observer": observer, "residual": "seeded"}
    lab.follow(request(**asked), device="cpu", out="behind")
    plain = contents(Path("behind"))
    assert {"certificate.json", "inputs.npz", "z.npz", "decoded.npz"} < set(plain)
    for number, parts in enumerate(
        [{"decode_device": "cpu"}, {"decode_device": "vulkan:0"}, {"decode_device": "vulkan:0", "fft_device": "cpu"}]
    ):
        out = Path(f"apart-{number}")
        lab.follow(request(**asked, **parts), device="cpu", out=out)
        assert contents(out) == plain
    lab.follow(request(**asked), device="vulkan:0", out="vulkan")
    lab.follow(request(**asked, decode_device="vulkan:0"), device="vulkan:0", out="queue")
    assert contents(Path("queue")) == contents(Path("vulkan"))


def test_metrics_say_where_each_part_ran(files: dict[str, Path], vulkan: VulkanDevice) -> None:
    behind = lab.follow(request(**files), device="cpu").metrics
    assert (behind.decode_beside, behind.decode_wait_seconds, behind.decode_backend_used) == (None, None, "cpu")
    own = lab.follow(request(**files, decode_device="cpu"), device="cpu").metrics
    assert own.decode_beside == "a device of its own, cpu"
    assert own.decode_wait_seconds is not None
    queue = lab.follow(request(**files, decode_device="vulkan:0"), device="vulkan:0").metrics
    assert (queue.decode_beside or "").startswith("queue 1 of vulkan:0")
    driver = next(family for family in vulkan.info.queues if family.compute)
    assert ("shares a queue of the driver" in (queue.decode_beside or "")) == (driver.count < 2)
    parts = lab.follow(request(**files, decode_device="vulkan:0", fft_device="cpu"), device="cpu").metrics
    assert (parts.op_backend_used, parts.decode_backend_used, parts.fft_backend_used) == ("cpu", "vulkan:0", "cpu")
    assert (parts.decode_backend_requested, parts.fft_backend_requested) == ("vulkan:0", "cpu")
    assert parts.decode_device == vulkan.info.name
    assert parts.fft_device == behind.op_device
    assert parts.gpu_hotloop_active is False
    assert [one.hash for one in parts.hashes] == [one.hash for one in behind.hashes]
    assert parts.kernel_fingerprints == behind.kernel_fingerprints


def test_an_open_device_with_one_queue_gets_a_second_device_beside_it(
    files: dict[str, Path], vulkan: VulkanDevice
) -> None:
    metrics = lab.follow(request(**files, decode_device="vulkan:0"), device=vulkan).metrics
    assert metrics.decode_beside == "a device of its own, vulkan:0"
    with open_device("vulkan:0", queues=2) as device:
        metrics = lab.follow(request(**files, decode_device="vulkan:0"), device=device).metrics
    assert (metrics.decode_beside or "").startswith("queue 1 of vulkan:0")


@pytest.mark.parametrize("part", ["decode", "fft"])
def test_a_part_is_never_quietly_elsewhere(files: dict[str, Path], part: str) -> None:
    asked: Any = {**files, f"{part}_device": "vulkan:99"}
    with pytest.raises(DeviceNotFoundError):
        lab.follow(request(**asked), device="cpu")
    metrics = lab.follow(request(**asked, allow_fallback=True), device="cpu").metrics
    assert [(flag.name, flag.requested) for flag in metrics.perf_flags] == [(f"{part}_device", "vulkan:99")]
    assert getattr(metrics, f"{part}_backend_requested") == "vulkan:99"
    with pytest.raises(NoResultError, match=rf"the null device computes nothing, and `{part}_device=` asks for"):
        lab.follow(request(**{**asked, f"{part}_device": "null"}), device="cpu")
    with pytest.raises(NoResultError, match="the null device computes nothing"):
        lab.follow(request(**{**asked, f"{part}_device": "cpu"}), device="null")


def test_a_gpu_is_required_of_each_part(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.core.metrics._placement.is_gpu", lambda info: info.spec == "vulkan:0")
    asked: Any = {**files, "require_gpu": True}
    with pytest.raises(DeviceNotFoundError, match=r"Fix: name a GPU with `decode_device=`"):
        lab.follow(request(**asked, decode_device="cpu"), device="vulkan:0")
    with pytest.raises(DeviceNotFoundError, match=r"Fix: name a GPU with `fft_device=`"):
        lab.follow(request(**asked, fft_device="cpu"), device="vulkan:0")


def test_a_stopped_rollout_goes_on_with_the_same_devices(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {**files, "observer": "snapshots", "decode_device": "cpu"}
    whole = lab.follow(request(**asked), device="cpu", out="whole")

    def pressing(*words: Any, **options: Any) -> Any:
        progress = options.pop("progress")

        def advance(amount: int) -> None:
            progress(amount)
            signal.raise_signal(signal.SIGINT)

        return rollout(*words, progress=advance, **options)

    with monkeypatch.context() as during:
        during.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
        during.setattr("dashi.lab.decoded_rollouts.rollout", pressing)
        with pytest.raises(Interrupted) as stop:
            lab.follow(request(**asked), device="cpu", out="out")
    part = stop.value.partial
    assert isinstance(part, Run)
    with np.load("out/decoded.npz") as kept:
        assert kept["step"].tolist() == [step for step in range(part.steps + 1) if step % 5 == 0]
    remaining = lab.remaining_request(part)
    assert remaining is not None
    assert remaining.decode_device == "cpu"
    np.testing.assert_array_equal(lab.follow(remaining, device="cpu", out="rest").state, whole.state)


@pytest.mark.parametrize("decode_device", [None, "cpu"])
def test_a_disk_that_is_full_is_the_error_of_the_job(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, decode_device: str | None
) -> None:
    def full(self: Album, step: int, decoded: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Album, "add", full)
    with pytest.raises(OSError, match="No space left"):
        lab.follow(request(**files, decode_device=decode_device), device="cpu", out="out")


def test_a_trace_has_tracks_of_each_device(files: dict[str, Path]) -> None:
    lab.follow(request(**files, decode_device="cpu", trace="t.perfetto-trace"), device="cpu")
    groups = {span.group for span in read_trace(Path("t.perfetto-trace")) if span.group != "stages"}
    assert len(groups) == 2
    assert sum(group.endswith(", decode") for group in groups) == 1
