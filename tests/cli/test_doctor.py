"""`dashi doctor` and the probing of drivers: what is missing is named, and a bad driver harms nobody."""

from __future__ import annotations

import json
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dashi.cli.main import app
from dashi.lab import health
from dashi.runtime import _probe as probe
from dashi.runtime._drivers import driver_environment, driver_files

# Code that ends a process at once, or never: an undefined instruction, and a jump to itself.
CRASH = {"x86_64": b"\x0f\x0b", "aarch64": b"\x00\x00\x00\x00"}
HANG = {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}
MACHINES = {"x86_64": 62, "aarch64": 183}
ENTRIES = ("vk_icdNegotiateLoaderICDInterfaceVersion", "vk_icdGetInstanceProcAddr")


def shared_object(code: bytes) -> bytes:
    """A whole ELF library whose only functions are a Vulkan driver's entry points, both made of this code.

    Written byte by byte, so that the tests need no compiler: header, three program headers, symbols, their names,
    their hash table, the dynamic section, code.
    """
    names = b"\0" + b"\0".join(name.encode() for name in ENTRIES) + b"\0"
    names += bytes(-len(names) % 8)
    symbols_at = 64 + 3 * 56
    names_at = symbols_at + 24 * (1 + len(ENTRIES))
    hash_at = names_at + len(names)
    table = struct.pack("<7I", 1, 3, 1, 0, 2, 0, 0)  # one bucket: symbol 1, then 2; padded to 28 bytes
    table += bytes(-len(table) % 8)
    dynamic_at = hash_at + len(table)
    entries = {4: hash_at, 5: names_at, 6: symbols_at, 10: len(names), 11: 24, 0: 0}
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in entries.items())
    code_at = dynamic_at + len(dynamic)
    symbols = bytes(24)
    for name in ENTRIES:
        symbols += struct.pack("<IBBHQQ", names.index(name.encode()), 0x12, 0, 1, code_at, len(code))
    end = code_at + len(code)
    headers = struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, end, end, 0x1000)
    headers += struct.pack("<IIQQQQQQ", 2, 6, *(dynamic_at,) * 3, *(len(dynamic),) * 2, 8)
    headers += struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    start = b"\x7fELF\x02\x01\x01" + bytes(9)
    start += struct.pack("<HHIQQQIHHHHHH", 3, MACHINES[platform.machine()], 1, 0, 64, 0, 0, 64, 56, 3, 0, 0, 0)
    return start + headers + symbols + names + table + dynamic + code


def driver(folder: Path, name: str, code: Mapping[str, bytes]) -> str:
    """A driver file that names a library made of this code."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        pytest.skip("libraries are made for Linux on x86-64 and arm64 only")
    library = folder / f"lib{name}.so"
    library.write_bytes(shared_object(code[platform.machine()]))
    file = folder / f"{name}.json"
    content = {"file_format_version": "1.0.0", "ICD": {"library_path": str(library), "api_version": "1.3.0"}}
    file.write_text(json.dumps(content))
    return str(file)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts on drivers are remembered: each test starts without any."""
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "cache"))


def use(monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(variable, ":".join(files))


def need_loader() -> None:
    if not probe.probe("loader").loader:
        pytest.skip("there is no Vulkan loader on this machine")


def sound_drivers() -> list[str]:
    """Driver files that give a device here."""
    result = [name for name, seen in probe.probe_each().items() if seen.devices and name.endswith(".json")]
    if not result:
        pytest.skip("there is no Vulkan driver on this machine")
    return result


def dashi(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dashi", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def doctor(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = dashi("doctor", "--json", *arguments)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def quick_doctor(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`dashi doctor` in this process. The binaries of all kernels, which take it longest, are left to other tests."""
    monkeypatch.setattr(health, "binaries", lambda: health.PartHealth("kernel binaries", "ok", "left to others"))
    return lambda *arguments: CliRunner().invoke(app, ["doctor", *arguments])


def findings(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [f for f in document["findings"] if f["name"] == name]


def test_doctor_finds_what_is_here() -> None:
    code, document = doctor()
    assert code == 0, document["verdict"]
    assert document["ok"]
    assert {f["name"] for f in document["findings"]} >= {
        "Python",
        "dashi",
        "cpu device",
        "kernel binaries",
        "spirv-val",
    }
    assert not [f for f in document["findings"] if f["status"] != "ok" and not f["fix"]]
    assert len(document["devices"]) == sum(f["name"] == "Vulkan device" and ": computes" in f["text"]
                                           for f in document["findings"])  # fmt: skip


def test_doctor_without_a_loader_warns_and_names_the_command(
    monkeypatch: pytest.MonkeyPatch, quick_doctor: Callable[..., Result]
) -> None:
    monkeypatch.setenv("DASHI_VULKAN_LOADER", "/nonexistent/libvulkan.so")
    done = quick_doctor("--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["verdict"] == ("dashi works on the NumPy device (cpu); there is no Vulkan device that works.")
    (loader,) = findings(document, "Vulkan loader")
    assert loader["status"] == "warning"
    assert loader["text"] == "no Vulkan loader was found (tried /nonexistent/libvulkan.so)"
    assert " install " in loader["fix"] or "pacman -S" in loader["fix"]


def test_doctor_for_people_shows_fixes_and_ends_with_its_verdict(
    monkeypatch: pytest.MonkeyPatch, quick_doctor: Callable[..., Result]
) -> None:
    monkeypatch.setenv("DASHI_VULKAN_LOADER", "/nonexistent/libvulkan.so")
    lines = quick_doctor().stdout.splitlines()
    assert lines[-1] == "dashi works on the NumPy device (cpu); there is no Vulkan device that works."
    beginnings = [line for line in lines if line and not line.startswith(" ")]  # others go on with what was said above
    assert [line.split()[0] for line in beginnings[:4]] == ["ok"] * 4
    (loader,) = [i for i, line in enumerate(lines) if line.split()[:3] == ["!!", "Vulkan", "loader"]]
    assert any(line.strip().startswith("Fix: ") for line in lines[loader + 1 : loader + 3])


@pytest.fixture
def other_dashi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of the package index's `dashi`, as an installer would leave them."""
    folder = tmp_path / "site" / "dashi-0.4.2.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: dashi\nVersion: 0.4.2\nSummary: Dataset shift\n")
    monkeypatch.syspath_prepend(folder.parent)


REMOVE_BOTH = "pip uninstall -y dashi dashi-compute, then install dashi-compute again (in a checkout: pip install .)"


@pytest.mark.usefixtures("other_dashi")
def test_doctor_warns_of_the_other_distribution_named_dashi() -> None:
    (other,) = [f for f in health.host() if f.name == "other dashi"]
    assert other.status == "warning"
    assert other.text == (
        "the distribution dashi 0.4.2 (Dataset shift) is installed too, and is imported by the same name"
    )
    assert other.fix == REMOVE_BOTH


def test_doctor_says_nothing_of_another_distribution_where_there_is_none() -> None:
    assert not list(health.other_distribution())


@pytest.mark.usefixtures("other_dashi")
def test_doctor_fails_where_the_other_distribution_took_our_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("dashi.open")
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["verdict"] == "dashi does not work here: dashi."
    (ours,) = findings(document, "dashi")
    assert ours["status"] == "failed"
    assert ours["text"].endswith(" holds other software of that name, or parts of both")
    assert ours["fix"] == REMOVE_BOTH


def test_doctor_names_broken_driver_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick_doctor: Callable[..., Result]
) -> None:
    need_loader()
    broken, gone = tmp_path / "broken.json", tmp_path / "gone.json"
    broken.write_text("{ this is not JSON")
    gone.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": "/nonexistent/libx.so"}}))
    use(monkeypatch, str(broken), str(gone))
    done = quick_doctor("--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    first, second = findings(document, "driver file")
    assert first["status"] == second["status"] == "warning"
    assert first["text"].startswith(f"{broken}: not a driver file (JSONDecodeError: ")
    assert first["fix"] == f"reinstall the driver it belongs to, or remove {broken}"
    assert second["text"] == f"{gone}: its library is not on this machine"
    assert document["devices"] == []


@pytest.mark.long
def test_doctor_outlives_a_driver_that_crashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = sound_drivers()
    bad = driver(tmp_path, "crashing", CRASH)
    use(monkeypatch, bad, *good)
    code, document = doctor()
    assert code == 0
    (found,) = [f for f in findings(document, "driver") if f["status"] == "warning"]
    assert found["text"] == f"{bad} crashed with SIGILL while it was probed"
    assert found["fix"].startswith("update or remove that driver")
    assert document["devices"]


def test_probe_gives_up_on_a_driver_that_hangs(tmp_path: Path) -> None:
    need_loader()
    seen = probe.probe("look", [driver(tmp_path, "hanging", HANG)], timeout=3)
    assert seen == probe.Probe(problem="did not answer within 3 s", unsafe=True)


def test_auto_leaves_a_crashing_driver_out_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = sound_drivers()
    bad = driver(tmp_path, "crashing", CRASH)
    use(monkeypatch, bad, *good)
    for _ in range(2):
        done = dashi("kernels", "check", "add", "--quick", "--device", "auto")
        assert done.returncode == 0, done.stderr
        assert f"the Vulkan driver {bad} is left out: it crashed with SIGILL" in done.stderr
        assert "vulkan:0" in done.stdout


def test_only_crashing_drivers_leave_numpy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need_loader()
    use(monkeypatch, driver(tmp_path, "crashing", CRASH))
    done = dashi("kernels", "check", "add", "--quick", "--device", "auto")
    assert done.returncode == 0, done.stderr
    assert "so NumPy computes" in done.stderr


def test_verdict_is_remembered_until_a_driver_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = sound_drivers()
    use(monkeypatch, *good)
    children: list[str] = []
    original = probe.probe

    def counted(what: probe.What = "look", drivers: Any = None, timeout: float = 60.0) -> probe.Probe:
        children.append(what)
        return original(what, drivers, timeout)

    monkeypatch.setattr(probe, "probe", counted)
    (tmp_path / "cache").rename(tmp_path / "earlier")
    assert probe.safe_drivers() is None
    assert len(children) == 1
    assert probe.safe_drivers() is None
    assert len(children) == 1
    bad = driver(tmp_path, "crashing", CRASH)
    use(monkeypatch, bad, *good)
    assert probe.safe_drivers() == good
    assert len(children) == 1 + 1 + 1 + len(good)
    assert probe.safe_drivers() == good
    assert len(children) == 1 + 1 + 1 + len(good)


def test_probe_describes_devices_as_this_process_would() -> None:
    from dashi.runtime.select import list_devices

    seen = probe.probe()
    assert list(seen.devices) == [info for info in list_devices() if info.spec.startswith("vulkan:")]


def test_child_process_does_not_probe_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHI_PROBE", "1")
    monkeypatch.setattr(probe, "probe", lambda *_: pytest.fail("a child started a child"))
    assert probe.safe_drivers() is None


def test_driver_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", "/one.json")
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    with driver_environment(["/two.json", "/three.json"]):
        assert [f.path for f in driver_files()] == ["/two.json", "/three.json"]
    with driver_environment([]):
        assert [f.problem != "" for f in driver_files()] == [True]
    assert [f.path for f in driver_files()] == ["/one.json"]
