"""Claims about benches in parts: merged they have the rows of the bench in one piece, in their order."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.bench.shards import BenchShard, merged_document
from dashi.cli import bench_peers
from dashi.cli.main import app
from dashi.errors import FileError, InputError
from dashi.io._shards import Shard, read_shards

BENCH = "bench kernels axpy scale add --size small --device cpu"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def identities(document: Any) -> list[tuple[Any, ...]]:
    return [(row["kernel"], row["dtype"], row["case"], row["shapes"], row["tuning"]) for row in document["rows"]]


@pytest.mark.long
def test_merged_rows_are_those_of_the_bench_in_one_piece(here: Path) -> None:
    for part in (1, 2):
        assert dashi(BENCH, f"--shard {part}/2 --save {part}").exit_code == 0
    again = dashi(BENCH, "--shard 2/2 --save 2")
    assert again.stderr.endswith("shard 2/2 in 2 is finished already: nothing is done\n")
    merged = json.loads(dashi("merge 2 1 --out all --json").stdout)
    document = json.loads(Path(merged["document"]).read_text())
    whole = json.loads(dashi(BENCH, "--json").stdout)
    assert identities(document) == identities(whole)
    assert document["cases"] == whole["cases"]
    assert [shard["device"] for shard in document["shards"]] == [whole["device"]] * 2
    assert Path(merged["page"]).read_text().count("\n| ") == len(whole["rows"]) + 1


def measured_shard(
    folder: Path, index: int, count: int = 2, device: str = "a", work: tuple[str, ...] = ("1", "2", "3"),
    **options: Any,
) -> Path:  # fmt: skip
    part = BenchShard("flow", Shard(index, count), folder, options=options)
    about: dict[str, Any] = {"name": device, "driver": "d"}
    rows = [{"n": int(one)} for one in part.share(work)]
    part.keep(work, {"device": about, "date": "2026", "command": f"shard {index}", "rows": rows, "peers": {}})
    return folder


def test_rows_come_in_their_order_and_each_shard_is_told(tmp_path: Path) -> None:
    folders = [measured_shard(tmp_path / str(index), index) for index in (2, 1)]
    document = merged_document(read_shards(folders))
    assert document["rows"] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert [shard["command"] for shard in document["shards"]] == ["shard 1", "shard 2"]
    part = BenchShard("flow", Shard(2, 2), tmp_path / "2")
    assert part.is_finished(("1", "2", "3"), {"name": "a", "driver": "d"})
    assert not part.is_finished(("1", "2"), {"name": "a", "driver": "d"})


def test_shards_of_other_devices_or_of_other_work_are_refused(tmp_path: Path) -> None:
    first = measured_shard(tmp_path / "1", 1)
    with pytest.raises(FileError, match="device is a in the first and b in the second"):
        read_shards([first, measured_shard(tmp_path / "2", 2, device="b")])
    with pytest.raises(FileError, match=r"work is \['1', '2', '3'\] in the first and"):
        read_shards([first, measured_shard(tmp_path / "3", 2, work=("1", "2", "4"))])
    with pytest.raises(FileError, match="with other settings"):
        measured_shard(first, 2)
    with pytest.raises(InputError, match=r"there are 3 rows to share\. Fix: make 3 shards or fewer"):
        measured_shard(tmp_path / "4", 4, 4)
    with pytest.raises(InputError, match=r"`shard=1/2` leaves a folder to merge\. Fix: name it with `save=`"):
        BenchShard("flow", Shard(1, 2), None)


def test_shards_that_measured_other_things_of_the_same_work_are_refused(tmp_path: Path) -> None:
    first = measured_shard(tmp_path / "1", 1, peer=["torch", "jax"], tflops=None)
    with pytest.raises(FileError, match="peer is torch, jax in the first and none in the second"):
        read_shards([first, measured_shard(tmp_path / "2", 2, peer=None, tflops=None)])
    with pytest.raises(FileError, match=r"tflops is none in the first and 2\.5 in the second"):
        read_shards([first, measured_shard(tmp_path / "3", 2, peer=["torch", "jax"], tflops=2.5)])
    asked = ("1", "2", "3"), {"name": "a", "driver": "d"}
    for peer, finished in ((["torch", "jax"], True), (["jax"], False), (None, False)):
        part = BenchShard("flow", Shard(1, 2), tmp_path / "1", options={"peer": peer, "tflops": None})
        assert part.is_finished(*asked) is finished


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("bench fft --tunings", {"tunings": "True", "peer": "none"}),
        ("bench rollout --peer torch", {"peer": "torch"}),
        ("bench flow --n 32", {"n": "32", "peer": "none"}),
        ("bench kernels scale --size small --tflops 2", {"size": "small", "peer": "none", "tflops": "2.0"}),
    ],
)
def test_what_decides_rows_is_told_by_every_bench(
    tmp_path: Path, words: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Made(Exception):
        pass

    def keep(self: BenchShard, *_: Any) -> None:
        raise Made(self._options)  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(BenchShard, "is_finished", keep)
    monkeypatch.setattr(bench_peers, "_load_peers", lambda *_: [])
    done = dashi(words, f"--device cpu --shard 1/1 --save {tmp_path / 'a'}")
    assert isinstance(done.exception, Made)
    assert done.exception.args == (options,)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--overwrite", "--overwrite replaces a run, and shards of `dashi bench flow` become a document of a name of"),
        ("--device cpu", "--device cpu is where a fit is made, and shards of `dashi bench flow` are measured already."),
    ],
)
def test_options_that_a_merge_of_benches_has_no_use_for_are_refused(tmp_path: Path, option: str, said: str) -> None:
    folders = [str(measured_shard(tmp_path / str(index), index)) for index in (1, 2)]
    done = dashi("merge", *folders, option, f"--out {tmp_path / 'out'}")
    assert done.exit_code == 3
    assert said in done.stderr
    assert "\nFix: leave it away." in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"device": {}, "date": "", "command": "", "rows": [1]}', "[" * 9999])
def test_documents_from_anyone_are_checked(tmp_path: Path, text: str) -> None:
    folders = [measured_shard(tmp_path / str(index), index) for index in (1, 2)]
    (folders[1] / "bench.json").write_text(text)
    with pytest.raises(FileError, match="is no document of a bench"):
        merged_document(read_shards(folders))
    shutil.copy(folders[0] / "bench.json", folders[1] / "bench.json")
    (folders[1] / "bench.json").write_text((folders[0] / "bench.json").read_text().replace('"a"', '"b"'))
    with pytest.raises(FileError, match="was measured on another device than it says"):
        merged_document(read_shards(folders))
    done = dashi(f"merge {folders[0]} {folders[1]} --out {tmp_path / 'out'}")
    assert done.exit_code == 3
