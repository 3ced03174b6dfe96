"""Binaries: what is committed is what the sources build, and nothing else is ever loaded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import dashi.kernels
from dashi.errors import KernelError, PortabilityError, SpirvError, StaleBinaryError
from dashi.kernels import _build as build
from dashi.kernels import _compiler as compiler
from dashi.kernels import _registry as registry
from dashi.kernels import _scaffold as scaffold
from dashi.kernels._compiler import Compiler
from dashi.kernels.abi import Kernel
from dashi.kernels.spirv._module import parse
from dashi.kernels.spirv._portable_lint import ARITHMETIC, NO_CONTRACTION


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    made = registry.read(scaffold.new("probe", tmp_path))
    build.build(made)
    return made


def rebuild(kernel: Kernel, words: bytes, key: str = "main.f32") -> None:
    """Put these bytes in the place of a binary, with an index that vouches for them."""
    folder = kernel.folder / "spirv"
    index = json.loads((folder / "index.json").read_text())
    index[key]["spirv"] = hashlib.sha256(words).hexdigest()
    (folder / f"{index[key]['spirv']}.spv").write_bytes(words)
    (folder / "index.json").write_text(json.dumps(index))


@pytest.mark.long  # `./dev test` builds all of them before the tests: `dashi kernels build --check`
@pytest.mark.parametrize("name", dashi.kernels.names())
def test_the_committed_binaries_are_what_the_sources_build(name: str) -> None:
    assert build.check(dashi.kernels.get(name)) == ()


@pytest.mark.parametrize("name", [n for n in dashi.kernels.names() if dashi.kernels.get(n).portable])
def test_no_float_operation_of_a_portable_kernel_may_be_contracted(name: str) -> None:
    kernel = dashi.kernels.get(name)
    for shader, variant in build.variants(kernel):
        module = parse(build.load(kernel, shader, variant).words)
        decorated = {i.words[0] for i in module.all("Decorate") if i.words[1] == NO_CONTRACTION}
        assert {i.result for i in module.all(*ARITHMETIC)} == decorated


def test_axpy_has_float_operations_to_guard() -> None:
    kernel = dashi.kernels.get("axpy")
    module = parse(build.load(kernel, "main", "f32").words)
    assert [i.name for i in module.all(*ARITHMETIC)] == ["OpFMul", "OpFAdd"]


def test_a_binary_is_named_by_its_content(kernel: Kernel) -> None:
    index = json.loads((kernel.folder / "spirv" / "index.json").read_text())
    assert sorted(index) == ["main.f32", "main.f64"]
    for key, entry in index.items():
        binary = build.load(kernel, *key.split("."))
        assert binary.digest == entry["spirv"] == hashlib.sha256(binary.words).hexdigest()
        assert entry["source"] == build.source_digest(kernel, *key.split("."))


def test_building_twice_changes_no_file(kernel: Kernel) -> None:
    before = {p.name: p.read_bytes() for p in (kernel.folder / "spirv").iterdir()}
    build.build(kernel)
    assert {p.name: p.read_bytes() for p in (kernel.folder / "spirv").iterdir()} == before


def test_building_removes_what_is_no_longer_needed(kernel: Kernel) -> None:
    old = {p.name for p in (kernel.folder / "spirv").glob("*.spv")}
    (kernel.folder / "spirv" / "stopped.part").write_bytes(b"half")
    (kernel.folder / "kernel.comp").write_text("T apply(T x) { return x + canon(a); }\n")
    build.build(kernel)
    new = {p.name for p in (kernel.folder / "spirv").iterdir()}
    assert len(new) == 3
    assert not old & new


def test_a_failed_build_leaves_the_old_binaries(kernel: Kernel) -> None:
    before = {p.name for p in (kernel.folder / "spirv").iterdir()}
    (kernel.folder / "kernel.comp").write_text("T apply(T x) { return x / a; }\n")
    with pytest.raises(PortabilityError):
        build.build(kernel)
    assert {p.name for p in (kernel.folder / "spirv").iterdir()} == before


def test_a_folder_that_cannot_be_written_is_a_typed_error(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dashi._atomic_file.os.replace", full)
    with pytest.raises(KernelError) as error:
        build.build(kernel)
    assert str(error.value) == (
        f"the binaries of kernel 'probe' cannot be written to {kernel.folder / 'spirv'}: No space left on device. "
        "Fix: make room there, or get permission to write."
    )
    assert not list(kernel.folder.rglob("*.part"))


def stale(kernel: Kernel) -> str:
    with pytest.raises(StaleBinaryError) as error:
        build.load(kernel, "main", "f32")
    fix = f" Fix: run `dashi kernels build --folder {kernel.folder}`."
    assert str(error.value).endswith(fix)
    return str(error.value).removesuffix(fix)


def test_a_missing_index_is_an_error_with_the_command(kernel: Kernel) -> None:
    (kernel.folder / "spirv" / "index.json").unlink()
    assert stale(kernel) == "kernel 'probe' has no binary main.f32."


def test_a_changed_source_makes_the_binary_stale(kernel: Kernel) -> None:
    with (kernel.folder / "kernel.comp").open("a") as file:
        file.write("// a change\n")
    assert stale(kernel) == (
        "kernel 'probe' has a stale binary main.f32: its sources or the compiler changed since it was built."
    )


def test_a_changed_toolchain_makes_the_binary_stale(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "TOOLCHAIN", compiler.TOOLCHAIN + " other")
    assert "stale binary main.f32" in stale(kernel)


def test_a_missing_file_is_an_error_with_the_command(kernel: Kernel) -> None:
    digest = build.load(kernel, "main", "f32").digest
    (kernel.folder / "spirv" / f"{digest}.spv").unlink()
    assert stale(kernel) == f"kernel 'probe' lacks the file {digest}.spv of main.f32 (No such file or directory)."


def test_a_damaged_file_is_an_error_with_the_command(kernel: Kernel) -> None:
    digest = build.load(kernel, "main", "f32").digest
    path = kernel.folder / "spirv" / f"{digest}.spv"
    path.write_bytes(path.read_bytes()[:-4])
    assert stale(kernel) == (
        f"kernel 'probe' has a damaged binary main.f32: {digest}.spv does not have the digest that names it."
    )


@pytest.mark.parametrize("text", ["[]", '{"main.f32": 3}', '{"main.f32": {"source": "", "spirv": "../../etc/passwd"}}'])
def test_an_index_that_is_none_is_refused(kernel: Kernel, text: str) -> None:
    (kernel.folder / "spirv" / "index.json").write_text(text)
    assert stale(kernel) == "kernel 'probe' has a spirv/index.json that is not an index of binaries."


@pytest.mark.parametrize("text", ["{", "[" * 100_000, " " * (1 << 21)])
def test_an_index_that_is_no_json_is_refused(kernel: Kernel, text: str) -> None:
    (kernel.folder / "spirv" / "index.json").write_text(text)
    assert stale(kernel).startswith("kernel 'probe' has an unreadable spirv/index.json (")


def test_foreign_binaries_with_right_digests_are_still_refused(kernel: Kernel) -> None:
    double = build.load(kernel, "main", "f64").words
    rebuild(kernel, double)
    with pytest.raises(
        SpirvError, match=r"the binary of probe/main\.f32 does not fit its ABI: the set of capabilities"
    ):
        build.load(kernel, "main", "f32")
    rebuild(kernel, double[: len(double) // 8 * 4])
    with pytest.raises(SpirvError, match="the SPIR-V module is refused"):
        build.load(kernel, "main", "f32")
    rebuild(kernel, b"not a shader")
    with pytest.raises(SpirvError, match="it has 12 bytes, which is not a whole SPIR-V file"):
        build.load(kernel, "main", "f32")


def test_a_loader_validates_each_binary_once(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = build.validate

    def counted(words: bytes, kernel: Kernel, shader: str, variant: str) -> None:
        calls.append(variant)
        real(words, kernel, shader, variant)

    monkeypatch.setattr(build, "validate", counted)
    loader = build.Loader()
    for variant in ("f32", "f64", "f32", "f64"):
        loader.load(kernel, "main", variant)
    assert calls == ["f32", "f64"]


def test_binaries_of_the_package_are_held_to_their_digests_and_validated_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(build, "validate", lambda *_: calls.append("validated"))
    axpy = dashi.kernels.get("axpy")
    shader = next(iter(axpy.shaders))
    assert build.Loader().load(axpy, shader, "f32").digest == build.digest_of(axpy, shader, "f32")
    assert calls == []
    build.Loader(everything=True).load(axpy, shader, "f32")
    assert calls == ["validated"]


def test_check_names_every_difference(kernel: Kernel) -> None:
    folder = kernel.folder / "spirv"
    (folder / "extra.spv").write_bytes(b"")
    assert build.check(kernel) == ("spirv/extra.spv belongs to no variant",)
    (folder / "extra.spv").unlink()
    good = parse(build.load(kernel, "main", "f32").words)
    changed = good.to_bytes()[:8] + b"\x01\0\0\0" + good.to_bytes()[12:]  # another generator
    rebuild(kernel, changed)
    old, new = hashlib.sha256(good.to_bytes()).hexdigest(), hashlib.sha256(changed).hexdigest()
    assert build.check(kernel) == (
        f"main.f32 is {new[:12]} in the folder, but builds as {old[:12]}",
        f"spirv/{old}.spv belongs to no variant",
    )
    (folder / "index.json").unlink()
    with Compiler() as opened:
        assert build.check(kernel, opened)[:2] == (
            "kernel 'probe' has no binary main.f32.",
            "kernel 'probe' has no binary main.f64.",
        )


def test_the_validator_of_khronos_has_its_say(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "spirv-val"
    tool.write_text("#!/bin/sh\ncat > /dev/null\necho 'error: line 3: no' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr(build.shutil, "which", lambda _: str(tool))
    with pytest.raises(SpirvError) as error:
        build.build(kernel)
    assert str(error.value) == (
        "spirv-val refuses probe/main.f32: error: line 3: no. Fix: correct the shader; report it if the GLSL is right."
    )
