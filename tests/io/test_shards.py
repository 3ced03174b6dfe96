"""Claims about shards: every thing is in one part, parts differ by one at most, and what cannot be is said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashi.errors import FileError, InputError
from dashi.io._run_mark import MARK, Mark, write_mark
from dashi.io._run_names import SHARD
from dashi.io._shards import Shard, ShardRecord, read_shards, write_record


@given(st.integers(1, 500), st.data())
def test_every_member_is_in_one_part_and_parts_are_alike(total: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, total))
    parts = [Shard(index, count).part(total, "members") for index in range(1, count + 1)]
    assert [member for part in parts for member in part] == list(range(total))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert min(map(len, parts)) >= 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5/4", "`shard=` is 5/4. Fix: use 1/4 to 4/4."),
        ("0/4", "`shard=` is 0/4. Fix: use 1/4 to 4/4."),
        ("-1/4", "`shard=` is -1/4. Fix: use 1/4 to 4/4."),
        ("1/0", "`shard=` is 1/0. Fix: make 1 to 100000 shards."),
        ("1/999999", "`shard=` is 1/999999. Fix: make 1 to 100000 shards."),
        ("a/b", "`shard=` is 'a/b'. Fix: give the part and how many there are, such as 2/7."),
        ("2", "`shard=` is '2'. Fix: give the part and how many there are, such as 2/7."),
        ("1/99999999999", "`shard=` is '1/99999999999'. Fix: give the part and how many there are, such as 2/7."),
    ],
)
def test_a_shard_that_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        Shard.parse(text)
    assert str(caught.value) == said


def test_more_shards_than_members_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        Shard(5, 8).part(4, "members")
    assert str(caught.value) == "`shard=` is 5/8, and there are 4 members to share. Fix: make 4 shards or fewer."


def record(index: int, count: int = 2, more: Mapping[str, object] | None = None) -> ShardRecord:
    values: dict[str, object] = {
        "dashi_version": "1", "command": "flow simulate", "index": index, "count": count, "total": 4,
        "unit": "members", "settings": {"steps": "4"}, "bits": {"NumPy": "2.0"}, "work": {"steps": 4}, **(more or {}),
    }  # fmt: skip
    return ShardRecord.model_validate(values)


def left(folder: Path, shard: ShardRecord, *, finished: bool = True) -> Path:
    folder.mkdir()
    write_mark(folder, Mark(shard.command, finished, (SHARD,)))
    write_record(folder / SHARD, shard)
    return folder


def test_shards_come_in_order_whatever_the_order_of_folders(tmp_path: Path) -> None:
    folders = [left(tmp_path / str(index), record(index, 3)) for index in (3, 1, 2)]
    assert [one.record.index for one in read_shards(folders)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"command": "flow evaluate"}, "the command is flow simulate in the first and flow evaluate in the second"),
        ({"dashi_version": "2"}, "the version of dashi is 1 in the first and 2 in the second"),
        ({"total": 5}, "the total is 4 in the first and 5 in the second"),
        ({"settings": {"steps": "5"}}, "steps is 4 in the first and 5 in the second"),
        ({"settings": {}}, "steps is 4 in the first and not said in the second"),
        ({"bits": {"NumPy": "1.9\x1b[2J"}}, r"NumPy is 2.0 in the first and 1.9?[2J in the second"),
        ({"work": {"steps": 6}}, "steps is 4 in the first and 6 in the second"),
    ],
)
def test_shards_of_two_runs_are_refused(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    folders = [left(tmp_path / "a", record(1)), left(tmp_path / "b", record(2, 2, changed))]
    with pytest.raises(FileError) as caught:
        read_shards(folders)
    assert f"are shards of different runs: {said}. Fix: merge shards of one command" in str(caught.value)


def test_a_hole_is_named(tmp_path: Path) -> None:
    folders = [left(tmp_path / str(index), record(index, 4)) for index in (1, 3)]
    with pytest.raises(FileError, match=r"of 4 shards 2 are missing: 2/4, 4/4. Fix: run the same command with"):
        read_shards(folders)
    with pytest.raises(FileError, match=r"/1 and .*/1 are both shard 1/4. Fix: leave one away."):
        read_shards([folders[0], folders[0]])
    with pytest.raises(InputError, match="there is nothing to merge"):
        read_shards([])


def test_folders_that_are_no_shards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no folder"):
        read_shards([tmp_path / "none"])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(FileError, match=r"is no shard: no run left it"):
        read_shards([empty])
    write_mark(empty, Mark("flow simulate", finished=True))
    with pytest.raises(FileError, match=r"is no shard: it has no shard.json"):
        read_shards([empty])
    with pytest.raises(FileError, match=r"holds a run that is not finished\. Fix: run the same command again"):
        read_shards([left(tmp_path / "half", record(1), finished=False)])


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"schema_version": 2}', "\xff\xfe", "[" * 100_000, '{"schema_version": 1, "more": 1}']
)
def test_a_damaged_record_is_refused(tmp_path: Path, text: str) -> None:
    folder = left(tmp_path / "a", record(1))
    (folder / SHARD).write_text(text)
    with pytest.raises(FileError, match=r"is not what a shard says of itself. Fix: run that shard again."):
        read_shards([folder])


def test_a_record_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    folder = left(tmp_path / "a", record(1))
    text = (folder / SHARD).read_text()
    for old, new in (('"index": 1', '"index": 3'), ('"total": 4', '"total": 1'), ('"count": 2', '"count": 100001')):
        (folder / SHARD).write_text(text.replace(old, new))
        with pytest.raises(FileError, match="is not what a shard says of itself"):
            read_shards([folder])


def test_no_link_is_followed_out_of_a_shard(tmp_path: Path) -> None:
    folder, outside = left(tmp_path / "a", record(1)), tmp_path / "elsewhere.json"
    (folder / SHARD).rename(outside)
    (folder / SHARD).symlink_to(outside)
    with pytest.raises(FileError):
        read_shards([folder])
    (folder / SHARD).unlink()
    (folder / SHARD).mkdir()
    with pytest.raises(FileError, match="is no shard"):
        read_shards([folder])
    assert (folder / MARK).exists()
