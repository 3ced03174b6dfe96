"""The package as its users get it: what it imports, what it brings, what it leaves alone."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from dashi.core.operators._catalogue import KINDS
from dashi.errors import DISTRIBUTION, install_extra
from dashi.flow.proxy import MODELS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dashi"
CORE = re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / "core.txt").read_text(), re.MULTILINE)

IMPORT_EVERYTHING = """
import pkgutil, sys
seen = []
def hook(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append((event, str(arguments[0])))
    elif event in {"subprocess.Popen", "os.system", "os.mkdir", "os.remove", "socket.connect"} or "thread" in event:
        seen.append((event, str(arguments)))
    elif event == "ctypes.dlopen" and arguments[0] and ("vulkan" in arguments[0] or "EGL" in arguments[0]):
        seen.append((event, arguments[0]))
import numpy, typer, rich.console, pydantic
try:
    import matplotlib.figure
except ModuleNotFoundError:
    pass
sys.addaudithook(hook)  # after those: what they do is theirs
import dashi
for module in pkgutil.walk_packages(dashi.__path__, "dashi."):
    if not module.name.endswith("__main__"):
        try:
            __import__(module.name)
        except ModuleNotFoundError as missing:
            if missing.name not in {"matplotlib", "cmcrameri"}:  # modules that draw are imported where they are used
                raise
print(seen)
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def python(code: str) -> str:
    return run(sys.executable, "-W", "error", "-B", "-c", code)


def test_importing_every_module_opens_no_device_and_writes_nothing() -> None:
    assert python(IMPORT_EVERYTHING) == "[]\n"


def test_import_dashi_brings_no_extra_and_no_command_line() -> None:
    unwanted = {"matplotlib", "cmcrameri", "vulkan", "blake3", "typer", "rich", "vkdispatch_vulkan_native", "dashi.cli"}
    loaded = python("import dashi, sys; print(*sys.modules)").split()
    assert not unwanted.intersection(loaded)


def test_version_is_written_once() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert python("import dashi; print(dashi.__version__)").strip() == declared == metadata.version(DISTRIBUTION)


def test_advice_names_our_distribution_and_never_that_of_others() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert declared["name"] == DISTRIBUTION
    assert install_extra("plot") == "pip install 'dashi-compute[plot]'"
    pages = [ROOT / "README.md", ROOT / "dev", ROOT / "pyproject.toml", *(ROOT / "docs").rglob("*.md")]
    sources = [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "validation").rglob("*.py")]
    foreign = re.compile(r"pip install [^\n`]*?['\"\s]dashi(?!-compute)\b|(?<![-\w])dashi\[[a-z]")
    for file in {*pages, *sources} - {Path(__file__)}:
        assert not foreign.search(file.read_text()), file
    # Advice is made in one place of the source.
    assert [file.name for file in SOURCE.rglob("*.py") if "pip install '" in file.read_text()] == ["errors.py"]
    named = {
        extra for file in {*pages, *sources} for extra in re.findall(r"dashi-compute\[([a-z]+)\]", file.read_text())
    }
    named |= {extra for file in sources for extra in re.findall(r"install_extra\(['\"](\w+)", file.read_text())}
    assert named <= set(declared["optional-dependencies"])


def test_every_dependency_is_imported_somewhere() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    tops = {name.split(".")[0] for file in SOURCE.rglob("*.py") for name in imports(file)}
    names = {re.split(r"[<>=]", need)[0].lower() for need in declared}
    assert {{"pyyaml": "yaml"}.get(name, name) for name in names} <= tops


def test_source_distribution_lists_what_is_there() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"][
        "include"
    ]
    assert not [name for name in listed if not (ROOT / name[1:]).exists()]


def test_command_and_module_are_the_same_program() -> None:
    (entry,) = metadata.entry_points(group="console_scripts", name="dashi")
    assert entry.value == "dashi.cli.main:main"
    assert callable(entry.load())
    assert "Usage" in run(sys.executable, "-m", "dashi", "--help")


@functools.cache
def imports(file: Path) -> frozenset[str]:
    """What a file imports, by full names. Every file is parsed once for all tests that ask."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)
    return frozenset(names)


def test_raw_vulkan_is_touched_by_the_runtime_alone() -> None:
    # import-linter has no pattern for `_vk*`, so the files are read here.
    outside = [file for file in SOURCE.rglob("*.py") if not file.is_relative_to(SOURCE / "runtime")]
    assert outside
    assert not [f"{file}: {name}" for file in outside for name in imports(file) if "._vk" in name]


def test_foreign_functions_are_called_by_the_runtime_and_the_compiler_alone() -> None:
    using = {file for file in SOURCE.rglob("*.py") if "ctypes" in {name.split(".")[0] for name in imports(file)}}
    allowed = {SOURCE / "kernels" / "_compiler.py", *(SOURCE / "runtime").glob("*.py")}
    assert not using - allowed


def test_import_contract_holds() -> None:
    assert "Contracts: " in run(Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo", cwd=ROOT)


@pytest.mark.parametrize("file", ["dev", "validation"])
def test_pins_cover_every_dependency_and_name_no_host(file: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    extras = {"validation"} if file == "validation" else set(optional) - {"validation"}  # one file each
    named = [*project["dependencies"], *(need for extra in extras for need in optional[extra])]
    expected = {re.split(r"[\[<>=!~;]", need)[0].strip().lower() for need in named} - {DISTRIBUTION}
    text = (ROOT / "requirements" / f"{file}.txt").read_text()
    pinned = set(re.findall(r"^([\w.-]+)==", text, re.MULTILINE))
    assert expected <= pinned
    assert set(CORE) <= pinned
    assert "://" not in text
    blocks = re.split(r"\n(?=[a-zA-Z])", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the source distribution, which is built from the checkout."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    (found,) = out.glob("dashi_compute-*-py3-none-any.whl")
    return found


def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    kinds = {".py", ".comp", ".glsl", ".json", ".spv", ".typed"}
    files = {file for file in SOURCE.rglob("*") if file.is_file() and (file.suffix in kinds or file.name == "py.typed")}
    assert {file.suffix for file in files} >= {".py", ".comp", ".glsl", ".json", ".spv"}
    with zipfile.ZipFile(wheel) as archive:
        assert {file.relative_to(ROOT / "src").as_posix() for file in files} <= set(archive.namelist())
        (metadata_name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata_name).decode()
        tags = archive.read(metadata_name.replace("METADATA", "WHEEL")).decode().splitlines()
    # Pure Python: what is compiled is SPIR-V, which every system takes.
    assert {"Root-Is-Purelib: true", "Tag: py3-none-any"} <= set(tags)
    for line in ("Name: dashi-compute", "License-Expression: Apache-2.0", "Author: The dashi authors"):
        assert f"\n{line}\n" in text


def core_environment(folder: Path) -> Path:
    """A virtual environment with nothing in it but the packages of requirements/core.txt."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in CORE:
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # pinned for another platform
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(package.locate_file(top))).resolve())
    return folder / "bin" / "python"


def test_wheel_works_where_only_the_core_dependencies_are(wheel: Path, tmp_path: Path) -> None:
    inside = core_environment(tmp_path / "clean")
    run(sys.executable, "-m", "pip", "--python", inside, "install", "--quiet", "--no-index", "--no-deps", wheel)
    program = (
        "import dashi, numpy as np, sys; print(dashi.__file__)\n"
        "x, y = np.float32([[1, 2], [3, 4]])\n"
        "with dashi.open('cpu') as d: print(d.run('axpy', x, y, a=2).numpy().tolist())\n"
        "assert 'matplotlib' not in sys.modules"
    )
    place, result = run(inside, "-I", "-c", program).splitlines()
    assert Path(place).is_relative_to(tmp_path)
    assert result == "[5.0, 8.0]"
    by_name = (
        "from dashi._entry_points import *; print(*declarations(OPERATORS).by_name, *declarations(MODELS).by_name)"
    )
    assert run(inside, "-I", "-c", by_name).split() == [*KINDS, *MODELS]
    assert run(inside, "-I", "-B", "-c", IMPORT_EVERYTHING) == "[]\n"
    assert "axpy" in run(tmp_path / "clean" / "bin" / "dashi", "kernels", "list", cwd=tmp_path)


@pytest.mark.long
def test_wheel_in_a_clean_environment_computes_and_leaves_a_run_that_verifies(wheel: Path, tmp_path: Path) -> None:
    inside = core_environment(tmp_path / "clean")
    run(sys.executable, "-m", "pip", "--python", inside, "install", "--quiet", "--no-index", "--no-deps", wheel)
    command = tmp_path / "clean" / "bin" / "dashi"
    place = tmp_path / "work"
    place.mkdir()
    doctor = json.loads(run(command, "doctor", "--json", cwd=place))
    binaries = next(finding for finding in doctor["findings"] if finding["name"] == "kernel binaries")
    assert binaries["status"] == "ok"
    assert "all passed" in run(command, "kernels", "check", "axpy", "--quick", cwd=place)
    make = "import numpy as np; np.savez('in.npz', A=np.eye(4, dtype='f4')[::-1].copy(), z0=np.arange(4, dtype='f4'))"
    run(inside, "-I", "-c", make, cwd=place)
    words = "rollout --z0 in.npz --A in.npz --steps 100 --hash-every 50 --device cpu --out run --certificate run.json"
    run(inside, "-I", "-m", "dashi", *words.split(), cwd=place)
    assert "all 2 hashes are the same" in run(command, "verify", "run.json", "--device", "cpu", cwd=place)


@pytest.mark.long
def test_wheel_installs_with_the_pinned_core_from_the_index(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    inside = tmp_path / "clean" / "bin" / "python"
    pins = ROOT / "requirements" / "core.txt"
    run(inside, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:", "-r", pins)
    run(inside, "-m", "pip", "install", "--quiet", "--no-index", wheel)
    run(inside, "-m", "pip", "check")
    assert "axpy" in run(tmp_path / "clean" / "bin" / "dashi", "kernels", "list", cwd=tmp_path)
