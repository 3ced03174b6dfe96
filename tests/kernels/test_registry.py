"""Kernels by name: found by folder, imported on demand, added from outside, and refused with a reason."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dashi.kernels
from dashi.errors import AbiError, KernelError, KernelNotFoundError, StaleBinaryError
from dashi.kernels import _build as build
from dashi.kernels import _registry as registry
from dashi.kernels import _scaffold as scaffold
from dashi.kernels._other_names import ADVICE
from dashi.kernels._registry import Registry
from dashi.kernels._validate import check_name
from dashi.kernels.abi import Kernel


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return scaffold.new("triple", tmp_path)


def test_every_folder_of_the_tree_is_a_kernel_and_knows_its_place() -> None:
    house = Registry()
    assert {"add", "axpy"} <= set(house.names())
    for kernel in house:
        assert (kernel.folder / "kernel.py").is_file()
        assert (kernel.folder.parent.name, kernel.folder.name) == (kernel.family, kernel.name)
    assert len(house) == len(house.names())
    assert "add" in house
    assert "nothing" not in house


def test_names_and_aliases_are_all_different() -> None:
    house = Registry()
    words = [word for kernel in house for word in (kernel.name, *kernel.aliases)]
    assert len(words) == len(set(words))


def test_the_same_kernel_is_given_out_each_time() -> None:
    house = Registry()
    assert house.get("add") is house.get("add")
    assert dashi.kernels.get("add") is dashi.kernels.get("add")
    assert "add" in dashi.kernels.names()


def test_importing_the_package_reads_no_kernel_and_opens_no_device() -> None:
    code = (
        "import sys, dashi.kernels as k; assert 'dashi.kernels._registry' not in sys.modules; k.get('add'); "
        "assert not [m for m in sys.modules if m.startswith(('dashi.runtime', 'dashi_kernel', 'vkdispatch'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_the_kernel_asked_for_is_imported(tmp_path: Path) -> None:
    good = scaffold.new("good", tmp_path / "family")
    bad = scaffold.new("bad", tmp_path / "family")
    (bad / "kernel.py").write_text("raise RuntimeError('imported')")
    assert Registry(tmp_path).get("good").folder == good
    with pytest.raises(AbiError) as error:
        Registry(tmp_path).get("bad")
    assert str(error.value) == (f"{bad / 'kernel.py'} does not import: RuntimeError: imported. Fix: correct the file.")


def test_an_unknown_name_gets_its_neighbours() -> None:
    with pytest.raises(KernelNotFoundError) as error:
        Registry().get("axpi")
    assert error.value.what == "there is no kernel 'axpi'."
    assert error.value.fix.startswith("did you mean axpy")
    with pytest.raises(KernelNotFoundError) as error:
        Registry().get("qqqqqqqq")
    assert str(error.value) == ("there is no kernel 'qqqqqqqq'. Fix: `dashi kernels list` names them all.")


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("dot", "use `matmul` (matrices, batched too) or `gemv` (row vector times matrix)"),
        ("MM", "use `matmul` (matrices, batched too) or `gemv` (row vector times matrix)"),
        ("divide", "use `div` (element by element) or `scale` (by a number)"),
        (
            "gelu",
            (
                "no kernel does it: compute it on the host with NumPy, "
                "or write one (`dashi kernels new gelu --folder my_kernels`)"
            ),
        ),
    ],
)
def test_other_peoples_names_lead_to_the_kernels_that_do_it(name: str, fix: str) -> None:
    with pytest.raises(KernelNotFoundError) as error:
        dashi.kernels.get(name)
    assert str(error.value) == f"there is no kernel {name!r}. Fix: {fix}; `dashi kernels list` names them all."


def test_advice_for_other_names_names_kernels_that_are_there() -> None:
    house = dashi.kernels.default()
    words = {word for kernel in house for word in (kernel.name, *kernel.aliases)}
    for name, advice in ADVICE.items():
        assert name not in words, f"{name} is a kernel: the advice is never read"
        for quoted in re.findall("`([^`]+)`", advice):
            if quoted.startswith("dashi kernels new"):
                check_name(quoted.split()[3])
            else:
                assert house.get(quoted).name == quoted
    assert {name for name in ADVICE if "`" not in ADVICE[name]} == set(
        "concatenate concat cat stack hstack vstack reshape view ravel flatten random rand randn normal uniform "
        "prod logsumexp log_softmax".split()
    )


def test_a_near_alias_is_offered_too() -> None:
    with pytest.raises(KernelNotFoundError, match="did you mean cumsum"):
        dashi.kernels.get("cumsun")


def test_an_alias_finds_its_kernel(tmp_path: Path) -> None:
    folder = scaffold.new("thrice", tmp_path / "family")
    text = (folder / "kernel.py").read_text().replace("reference=reference,", 'reference=reference, aliases=("thr",),')
    (folder / "kernel.py").write_text(text)
    assert Registry(tmp_path).get("thr").name == "thrice"


def test_a_broken_kernel_does_not_stand_in_the_way_of_others(tmp_path: Path) -> None:
    bad = scaffold.new("bad", tmp_path / "family")
    (bad / "kernel.py").write_text("KERNEL = None\n")
    house = Registry(tmp_path)
    with pytest.raises(KernelNotFoundError, match="there is no kernel 'other'"):
        house.get("other")
    assert house.taken("bad") == bad
    assert house.taken("other") is None
    assert house.add(scaffold.new("other", tmp_path / "elsewhere")).name == "other"


def test_a_folder_from_outside_is_added_and_built(outside: Path) -> None:
    house = Registry()
    kernel = house.add(outside)
    assert (kernel.name, kernel.family, kernel.folder) == ("triple", "added", outside)
    assert house.get("triple") is kernel
    assert house.add(outside) is kernel
    assert "triple" not in Registry()
    for shader, variant in build.variants(kernel):
        assert build.load(kernel, shader, variant).words


def test_a_built_folder_is_added_without_building(outside: Path) -> None:
    build.build(registry.read(outside))
    before = sorted(p.stat().st_mtime_ns for p in outside.rglob("*.spv"))
    Registry().add(outside, build_missing=False)
    assert sorted(p.stat().st_mtime_ns for p in outside.rglob("*.spv")) == before


def test_an_unbuilt_folder_is_refused_where_nothing_may_be_built(outside: Path) -> None:
    house = Registry()
    with pytest.raises(StaleBinaryError) as error:
        house.add(outside, build_missing=False)
    assert str(error.value) == (
        f"kernel 'triple' has no binary main.f32. Fix: run `dashi kernels build --folder {outside}`."
    )
    assert "triple" not in house


def test_an_unbuilt_folder_is_refused_without_a_compiler(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "available", lambda: False)
    with pytest.raises(StaleBinaryError):
        Registry().add(outside)


def test_a_name_can_be_taken_only_once(tmp_path: Path) -> None:
    house = Registry()
    folder = scaffold.new("twin", tmp_path / "one")
    house.add(folder)
    other = Path(shutil.copytree(folder, tmp_path / "two" / "twin"))
    with pytest.raises(KernelError) as error:
        house.add(other)
    assert str(error.value) == (
        f"there is a kernel 'twin' already, in {folder}. Fix: rename the folder {other}, or its alias."
    )
    (tmp_path / "three").mkdir()
    clash = Path(shutil.copytree(folder, tmp_path / "three" / "axpy"))
    with pytest.raises(KernelError, match="there is a kernel 'axpy' already"):
        house.add(clash)


def test_two_families_cannot_hold_the_same_name(tmp_path: Path) -> None:
    first = scaffold.new("same", tmp_path / "a_family")
    second = Path(shutil.copytree(first, tmp_path / "b_family" / "same"))
    with pytest.raises(KernelError) as error:
        Registry(tmp_path)
    assert str(error.value) == f"two families hold a kernel 'same': {first} and {second}. Fix: rename one of them."


def test_folders_that_are_no_kernels_are_refused(tmp_path: Path) -> None:
    house = Registry()
    with pytest.raises(KernelError) as error:
        house.add(tmp_path / "absent")
    assert str(error.value) == (
        f"there is no kernel folder {tmp_path / 'absent'}. Fix: pass the folder that holds kernel.py."
    )
    (tmp_path / "empty").mkdir()
    with pytest.raises(KernelError) as error:
        house.add(tmp_path / "empty")
    assert str(error.value) == (
        f"the folder {tmp_path / 'empty'} holds no kernel.py. "
        "Fix: write one, or make a folder with `dashi kernels new NAME`."
    )
    (tmp_path / "empty" / "kernel.py").write_text("KERNEL = 3\n")
    with pytest.raises(AbiError, match=r"kernel\.py defines no KERNEL\. Fix: end it with KERNEL = Kernel"):
        house.add(tmp_path / "empty")
    bad = scaffold.new("fine", tmp_path).rename(tmp_path / "Not-Fine")
    with pytest.raises(AbiError, match=r"'Not-Fine' is not a kernel name\. Fix: use lower-case words"):
        house.add(bad)


def test_threads_that_ask_at_once_get_one_kernel() -> None:
    house = Registry()
    start = threading.Barrier(8)
    got: list[Kernel] = []

    def ask() -> None:
        start.wait()
        got.append(house.get("axpy"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert all(kernel is got[0] for kernel in got)


def test_references_treat_overflow_and_nan_as_values() -> None:
    big = np.array([3e38, np.nan, np.inf], dtype=np.float32)
    result = dashi.kernels.get("axpy").reference(big, -big, a=2.0)
    assert isinstance(result, np.ndarray)
    assert result.view(np.uint32).tolist() == [0x7F800000, 0x7FC00000, 0x7FC00000]


def test_a_new_folder_stands_on_its_own(tmp_path: Path) -> None:
    folder = scaffold.new("my_kernel", tmp_path)
    kernel = registry.read(folder)
    build.build(kernel)
    assert build.check(kernel) == ()
    names = {p.name for p in folder.iterdir()} - {"__pycache__"}
    assert names == {"kernel.comp", "kernel.py", "spirv"}
    x = np.array([1.5, -2.0, 0.0], dtype=np.float32)
    assert np.array_equal(kernel.reference(x, a=2.0), 2 * x)
    assert replace(kernel, portable=True) == kernel


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Bad", "'Bad' is not a kernel name. Fix: use lower-case words joined by single underscores."),
        ("a__b", "'a__b' is not a kernel name. Fix: use lower-case words joined by single underscores."),
        ("../up", "'../up' is not a kernel name. Fix: use lower-case words joined by single underscores."),
        ("sampler", "'sampler' is a word of GLSL or Python. Fix: choose another name for the kernel."),
        ("lambda", "'lambda' is a word of GLSL or Python. Fix: choose another name for the kernel."),
        ("add", "there is a kernel 'add' already. Fix: choose another name."),
    ],
)
def test_a_new_kernel_needs_a_free_plain_name(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(KernelError) as error:
        scaffold.new(name, tmp_path)
    assert str(error.value) == text
    assert list(tmp_path.iterdir()) == []


def test_a_new_kernel_never_overwrites(tmp_path: Path) -> None:
    folder = scaffold.new("once", tmp_path)
    with pytest.raises(KernelError) as error:
        scaffold.new("once", tmp_path)
    assert str(error.value) == f"{folder} exists already. Fix: choose another name or folder."
    (tmp_path / "file").write_text("")
    with pytest.raises(KernelError, match=r"cannot be written: Not a directory\. Fix: choose a folder you may write"):
        scaffold.new("twice", tmp_path / "file")


@pytest.mark.parametrize("statement", ["raise SystemExit", "raise SystemExit(0)", "import sys; sys.exit()"])
def test_a_kernel_that_ends_the_program_is_refused(tmp_path: Path, statement: str) -> None:
    folder = scaffold.new("quits", tmp_path)
    text = (folder / "kernel.py").read_text()
    (folder / "kernel.py").write_text(f"{statement}\n{text}")
    with pytest.raises(AbiError, match=r"kernel\.py does not import: SystemExit: .*\. Fix: correct the file\."):
        registry.read(folder)
    (folder / "kernel.py").write_text(text.replace("    return canon(", f"    {statement}\n    return canon("))
    with pytest.raises(KernelError, match=r"the reference in .*kernel\.py ends the program\. Fix: correct the file\."):
        registry.read(folder).reference(np.ones(3, np.float32), a=1.0)


def test_a_folder_of_kernels_is_read_whole_or_named(tmp_path: Path) -> None:
    first, second = scaffold.new("first", tmp_path / "mine"), scaffold.new("second", tmp_path / "mine" / "second")
    assert second == tmp_path / "mine" / "second"
    (tmp_path / "mine" / "notes").mkdir()
    assert [kernel.folder for kernel in registry.read_all(tmp_path / "mine")] == [first, second]
    assert [kernel.folder for kernel in registry.read_all(first)] == [first]
    with pytest.raises(KernelError) as error:
        Registry().add(tmp_path / "mine")
    assert str(error.value) == (
        f"the folder {tmp_path / 'mine'} holds no kernel.py, but first, second in it do. Fix: pass {first} or {second}."
    )
    with pytest.raises(KernelError, match=r"notes holds no kernel\.py\. Fix: write one"):
        registry.read_all(tmp_path / "mine" / "notes")
