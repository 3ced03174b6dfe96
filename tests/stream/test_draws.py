"""Arrays that a configuration describes are the same on every machine, and other for each name, item and seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dashi.errors import FileError, ShapeError
from dashi.stream import Field, FieldSource, SourceSpec
from dashi.stream._draws import array_of, items_of


def test_draws_have_the_bits_that_they_always_had() -> None:
    values = array_of("z", FieldSource(Field((3,))), seed=18, item=2)
    assert values.dtype == np.float32
    assert values.tobytes().hex() == "d0fd803ecb189e3ff7a0d23f"


def test_draws_follow_from_name_item_and_seed_alone() -> None:
    source = SourceSpec({"z": FieldSource(Field((50,))), "w": FieldSource(Field((50,)))}, seed=1)
    first, again = items_of(source, 4), items_of(source, 4)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["z"], first["w"])
    assert not np.array_equal(first["z"], items_of(source, 5)["z"])
    assert not np.array_equal(first["z"], items_of(SourceSpec(source.fields, seed=2), 4)["z"])
    assert not first["z"].flags.writeable


def test_each_way_gives_what_it_says() -> None:
    def values(draw: str, shape: tuple[int, ...] = (1000,), dtype: str = "f32", **numbers: float) -> np.ndarray:
        return array_of("v", FieldSource(Field(shape, dtype), draw, numbers))

    normal = values("normal", mean=3, scale=0.5)
    assert normal.mean() == pytest.approx(3, abs=0.1)
    assert normal.std() == pytest.approx(0.5, abs=0.1)
    uniform = values("uniform", low=-2, high=-1)
    assert -2 <= uniform.min() < -1.9 < -1.1 < uniform.max() < -1
    integers = values("integers", dtype="u32", low=3, high=7)
    assert set(integers.tolist()) == {3, 4, 5, 6}
    trits = values("trits", dtype="i8", support=0.5)
    assert set(trits.tolist()) == {-1, 0, 1}
    assert np.count_nonzero(trits) == pytest.approx(500, abs=80)
    assert values("constant", (2, 2), value=4).tolist() == [[4, 4], [4, 4]]
    assert values("ramp", (4,), "u32", start=1, step=3).tolist() == [1, 4, 7, 10]
    assert values("identity", (2, 2), scale=0.5).tolist() == [[0.5, 0], [0, 0.5]]
    with pytest.raises(ShapeError, match="an identity has two axes"):
        values("identity", (2,))


def test_files_have_a_row_for_each_item_and_are_held_to_their_shape(tmp_path: Path) -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save(tmp_path / "z.npy", rows)
    source = SourceSpec({"z": FieldSource(Field((2,)), "file", path=str(tmp_path / "z.npy"))})
    assert [items_of(source, k)["z"].tolist() for k in (0, 2, 3)] == [[0, 1], [4, 5], [0, 1]]
    with pytest.raises(FileError, match=r"has 'z' of shape \(3, 2\), the configuration says \(2,\)"):
        array_of("z", source.fields["z"])
    np.save(tmp_path / "z.npy", rows[:0])
    with pytest.raises(FileError, match="holds no items"):
        items_of(source, 0)
