"""Cache files that are not what they should be are ignored and written anew; users without a home have a cache too."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dashi import _cache as cache
from dashi.runtime import _drivers as drivers
from dashi.runtime import _probe as probe
from dashi.runtime import _probes as probes
from dashi.runtime import _residence as residence
from dashi.runtime import open_device
from dashi.runtime._tuning import Memory
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.info import DeviceInfo


def sealed(body: bytes) -> bytes:
    return hashlib.sha256(body).digest() + body


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def linked(path: Path) -> None:
    (path.parent / "elsewhere").write_bytes(sealed(b"65000"))
    path.symlink_to(path.parent / "elsewhere")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate((256 << 20) + 1)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("odd", [fifo, endless, linked, huge, folder])
def test_only_plain_files_of_moderate_size_are_read(odd: Callable[[Path], None], tmp_path: Path) -> None:
    odd(tmp_path / "file.bin")
    assert cache.read_cache(tmp_path / "file.bin") == b""


def test_files_of_other_users_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file.bin"
    cache.write_cache(file, b"mine")
    assert cache.read_cache(file) == b"mine"
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert cache.read_cache(file) == b""
    cache.write_cache(file, b"again")
    monkeypatch.undo()
    assert cache.read_cache(file) == b"again"


ODD = [b"", b"999999999", b"-1", b"1e3", b"65000.0", b"[[[", b"\xff\xfe", b"65001", "\u0661".encode(), b"{}"]


@pytest.mark.parametrize("body", ODD)
def test_odd_numbers_of_probes_are_found_anew(
    body: bytes, vulkan: VulkanDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = vulkan.limits.loop_trips
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path))
    file = tmp_path / "probes" / f"{vulkan.info.uuid}-loops.bin"
    file.parent.mkdir()
    file.write_bytes(sealed(body))
    assert probes.loop_limit(vulkan) == trips
    assert cache.read_cache(file) == str(trips).encode()
    hardware = DeviceInfo("vulkan:0", "gpu", "discrete", uuid="u", driver_version="1", features=residence.NEEDED)
    (tmp_path / "probes" / "u-1-resident.bin").write_bytes(sealed(body))
    monkeypatch.setattr(residence, "_ask", lambda _: 64)
    assert residence.resident_groups(hardware) == 64
    assert residence.resident_groups(hardware) == 64


@pytest.mark.parametrize(
    "document",
    ["[[[[", "[" * 100_000, "7", "null", "[]", "{}", '{"good": 7, "bad": {}}', '{"good": [7], "bad": {}}',
     '{"good": "abc", "bad": {}}', '{"good": null, "bad": [1]}', '{"good": null, "bad": {"a": 1}}'],
)  # fmt: skip
def test_odd_verdicts_on_drivers_and_odd_tunings_are_ignored(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(probe, "probe", lambda *_: probe.Probe())
    monkeypatch.setattr(probe, "drivers", lambda: ["a.json"])
    file = probe._memory()  # pyright: ignore[reportPrivateUsage]
    cache.write_cache(file, document.encode())
    assert probe.safe_drivers() is None
    assert json.loads(cache.read_cache(file)) == {"good": None, "bad": {}}
    info = DeviceInfo("vulkan:0", "gpu", "discrete", uuid="u")
    cache.write_cache(tmp_path / "tunings" / "0-0-u.bin", document.encode())
    kernel: Any = SimpleNamespace(name="add")
    assert Memory(info).get(kernel, "f32") is None


def test_users_without_a_home_have_a_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("DASHI_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    private = tmp_path / f"dashi-{os.getuid()}"
    assert cache.cache_folder() == private
    assert private.stat().st_mode & 0o777 == 0o700
    assert cache.cache_folder() == private
    drivers.driver_files()
    # Somebody else was there first, with a link or with open doors: nothing is kept, and nothing fails.
    private.chmod(0o777)
    (tmp_path / "other").mkdir(mode=0o700)
    for _ in range(2):
        nowhere = cache.cache_folder() / "probes" / "file.bin"
        assert not nowhere.is_relative_to(tmp_path)
        cache.write_cache(nowhere, b"body")
        assert cache.read_cache(nowhere) == b""
        if private.is_dir() and not private.is_symlink():
            private.rmdir()
            private.symlink_to(tmp_path / "other")


@pytest.mark.usefixtures("vulkan_session")
def test_a_cache_full_of_pipes_and_links_does_not_hold_anybody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path))
    ones = np.ones(3, np.float32)

    def works() -> None:
        with open_device("vulkan:0") as device:
            assert device.run("add", ones, ones).numpy().tolist() == [2, 2, 2]

    works()
    files = sorted(path for path in tmp_path.rglob("*.bin"))
    assert len(files) >= 3
    for i, file in enumerate(files):
        file.unlink()
        (fifo, endless)[i % 2](file)
    works()
    assert all(file.is_file() and not file.is_symlink() for file in files)


def test_what_the_validation_layers_said_is_logged_when_nobody_took_it(
    fresh_vulkan: VulkanDevice, caplog: pytest.LogCaptureFixture
) -> None:
    messages = fresh_vulkan.instance.messages
    messages.append("taken")
    assert fresh_vulkan.instance.take_messages() == ["taken"]
    messages += ["a hazard", "a hazard"]
    fresh_vulkan.close()
    assert [record.getMessage() for record in caplog.records] == ["validation layers: a hazard"]
    messages.clear()
