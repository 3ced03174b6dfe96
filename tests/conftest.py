"""Settings of the whole suite, folders that commands are tried in, and windows of flows that models are fitted to."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from dashi.errors import DeviceError
from dashi.flow import Flow, Kolmogorov, ensemble
from dashi.flow.simulation import simulate
from dashi.flow.windows import Windows
from dashi.io import _files as files
from dashi.runtime import Device, open_device
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

# Time limits per example would measure the machine's load, not the code.
hypothesis.settings.register_profile("dashi", deadline=None, max_examples=50)
# Continuous integration tries the same examples every time, so that red means the change and not the dice.
hypothesis.settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dashi")


def pytest_configure(config: pytest.Config) -> None:
    """Gives the suite an empty pipeline cache of its own, which its worker processes share."""
    # Tests press Ctrl-C, which is ignored from the start in what a script runs in the background.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Under nohup terminals cannot hang up, and what tests start would inherit that.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if "DASHI_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="dashi-tests-")
        os.environ["DASHI_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What asks for the validation layers is left out where `dev` found them missing, and says so."""
    if item.get_closest_marker("validation") and os.environ.get("DASHI_VALIDATION") == "0" and not os.environ.get("CI"):
        pytest.skip("the Vulkan validation layers are not installed, or switched off by DASHI_VALIDATION=0")


def open_vulkan(validation: bool | None = None) -> VulkanDevice:
    """The first Vulkan device; a test that needs one is skipped where there is none."""
    try:
        device = open_device("vulkan:0", validation=validation)
    except DeviceError as error:
        # On the machines that guard main a missing driver must not pass for a green run.
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Vulkan here: {error.what}")
    assert isinstance(device, VulkanDevice)
    return device


@pytest.fixture(scope="session")
def vulkan_session() -> Iterator[VulkanDevice]:
    with open_vulkan() as device:
        yield device
        messages = device.instance.messages
    assert not messages


@pytest.fixture
def vulkan(vulkan_session: VulkanDevice) -> Iterator[VulkanDevice]:
    """The first Vulkan device; a message of the validation layers fails the test."""
    yield vulkan_session
    messages = list(vulkan_session.instance.messages)
    vulkan_session.instance.messages.clear()
    assert not messages


@pytest.fixture
def fresh_vulkan() -> Iterator[VulkanDevice]:
    """A Vulkan device of the test's own, which it may close or spoil."""
    device = open_vulkan()
    yield device
    device.close()
    assert not device.instance.messages


@pytest.fixture
def bare_vulkan() -> Iterator[VulkanDevice]:
    """A device without validation, for what measures time or memory: the layers cost both."""
    with open_vulkan(validation=False) as device:
        yield device


@pytest.fixture(params=["cpu", "vulkan"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Every device that computes."""
    if request.param == "cpu":
        with CpuDevice() as cpu:
            yield cpu
    else:
        yield request.getfixturevalue("vulkan")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write_inputs(here: Path) -> Callable[[int], None]:
    """Writes inputs of a rollout of that many components into it: a rotation, a bias, a state, an ensemble."""

    def write(d: int) -> None:
        rng = np.random.default_rng(5)
        turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
        np.savez(here / "A.npz", A=turn.astype(np.float32))
        np.savez(here / "b.npz", b=rng.standard_normal(d).astype(np.float32))
        np.savez(here / "z0.npz", z0=rng.standard_normal(d).astype(np.float32))
        np.savez(here / "many.npz", z0=rng.standard_normal((3, d)).astype(np.float32))

    return write


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[list[Path]]]:
    """While it lasts, the disk is full after so many files; those that were written are listed."""

    @contextlib.contextmanager
    def full_after(count: int) -> Generator[list[Path]]:
        real = files._write_beside  # pyright: ignore[reportPrivateUsage]
        done: list[Path] = []

        def write(path: Path, fill: Any, durable: bool) -> None:
            if len(done) >= count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(path, fill, durable)
            done.append(path)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_write_beside", write)
            yield done

    return full_after


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default model of two small seeds (1 and 2, chosen on 3), with baselines, as `dashi flow fit` leaves it."""
    from dashi import lab

    out = tmp_path_factory.mktemp("fit") / "model.npz"
    request = lab.FitRequest(
        flow=Flow(32, nu=5e-3, dt=0.02, scheme="etdrk4"), train=range(1, 3), validate=range(3, 4), train_steps=40,
        frame_every=5, spin_up=20, initial_options={"peak": 3}, k_cut=5, host_fft=True,
    )  # fmt: skip
    lab.fit(request, device="cpu", out=out)
    return out


@pytest.fixture(scope="session")
def windows_of() -> Callable[..., Windows]:
    """Makes windows of a flow: of these seeds, so many frames so many steps apart, after so many steps."""

    def made(flow: Flow, seeds: list[int], frames: int, interval: int, spin: int, **more: Any) -> Windows:
        taken: list[Any] = []
        with CpuDevice() as cpu:
            start = simulate(flow, ensemble(flow, "random", seeds, **more), spin, device=cpu, host_fft=True).state
            simulate(
                flow, start, (frames - 1) * interval, device=cpu, host_fft=True, frame_every=interval,
                frame=lambda step, fields: taken.append(fields["vorticity"].copy()),
            )  # fmt: skip
        return Windows(flow, interval, np.stack(taken, axis=1), tuple(seeds), (spin,) * len(seeds))

    return made


@pytest.fixture(scope="session")
def tiny(windows_of: Callable[..., Windows]) -> Windows:
    """Three seeds of a forced flow of 32 x 32 points, six frames each."""
    flow = Flow(32, nu=5e-3, dt=0.02, scheme="etdrk4", forcing=Kolmogorov(2), drag=0.1)
    return windows_of(flow, [1, 2, 3], 6, 2, 20, peak=3)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the documentation site, built as `./dev docs` does. A warning is an error: a link that leads
    nowhere, a page that is in no list."""
    folder = tmp_path_factory.mktemp("site")
    words = f"--quiet --fail-on-warning --keep-going --builder html --doctree-dir {folder}/doctrees docs {folder}/html"
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-m", "sphinx", *words.split()], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"
