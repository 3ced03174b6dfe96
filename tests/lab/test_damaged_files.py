"""Files with values that are of the right kind and wrong: readers say which file, and what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.observations.observation import Hash
from dashi.core.operators._catalogue import restore
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._checkpoint import read_checkpoint, write_checkpoint
from dashi.core.rollouts._observers import Hashes
from dashi.core.rollouts.run import Run
from dashi.errors import FileError, InputError
from dashi.flow import Flow, ensemble
from dashi.flow._diagnostics import Diagnostics, totals
from dashi.flow._fields import FieldStore, Variable, series_variable
from dashi.flow._operator import Vorticity
from dashi.flow.evaluation import save_evaluation
from dashi.flow.evaluation.files import array_text, load_evaluation, pack, text_array, unpack
from dashi.flow.proxy import Schema
from dashi.flow.proxy.catalogue import MODELS
from dashi.flow.proxy.catalogue import pack as pack_model
from dashi.flow.proxy.catalogue import unpack as unpack_model
from dashi.flow.simulation import simulate
from dashi.flow.windows.recorded import windows_from_run
from dashi.io.arrays import read_arrays, write_arrays
from dashi.report import _timeline as timeline
from dashi.report import figures
from dashi.report._story import STORY
from dashi.report._style import svg
from dashi.report.example import example_evaluation
from dashi.report.run import CONTINUATION, EVALUATION, read_run
from dashi.runtime._cpu_device import CpuDevice

HUGE = 10**400
FORMULAS = (r"$\frac{$", "$$", r"\$1")


# Evaluations


def test_an_evaluation_comes_back(tmp_path: Path) -> None:
    save_evaluation(tmp_path / EVALUATION, example_evaluation())
    again = load_evaluation(tmp_path / EVALUATION)
    assert [line.model for line in again.lines] == [line.model for line in example_evaluation().lines]


def line0(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda head: change(head["lines"][0])


HEADS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "other thresholds": line0(lambda line: line.update(thresholds=[0.95, 0.8, 0.5])),
    "fewer thresholds": line0(lambda line: line.update(thresholds=[0.9])),
    "thresholds of text": line0(lambda line: line.update(thresholds=["a", "b", "c"])),
    "a huge threshold": line0(lambda line: line.update(thresholds=[HUGE, 0.8, 0.5])),
    "infinite seconds": line0(lambda line: line.update(seconds=1e999)),
    "a huge size": line0(lambda line: line.update(numbers=HUGE)),
    "half of a pair": line0(lambda line: line.update(model="\ud800")),
    "half of a pair in a setting": lambda head: head["settings"].update(a="\udfff"),
    "a setting that is a list": lambda head: head["settings"].update(k_cut=[1]),
    "no models": lambda head: head.update(lines=[]),
    "a model twice": lambda head: head["lines"].__setitem__(1, head["lines"][0]),
    "a huge seed": lambda head: head.update(seeds=[1e999]),
}


@pytest.mark.parametrize("what", HEADS)
def test_the_text_of_an_evaluation_is_checked(what: str) -> None:
    arrays = pack(example_evaluation())
    head = json.loads(array_text(arrays["head"]))
    HEADS[what](head)
    with pytest.raises(FileError, match=r"f.npz is damaged: .* Fix: evaluate again"):
        unpack({**arrays, "head": text_array(json.dumps(head))}, "f.npz")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
@pytest.mark.parametrize("name", ["times", "energy", "enstrophy", "spectrum"])
def test_the_reference_of_an_evaluation_is_finite(name: str, value: float) -> None:
    arrays = pack(example_evaluation())
    arrays[name] = arrays[name].copy()
    arrays[name].reshape(-1)[1] = value
    with pytest.raises(FileError, match="not finite"):
        unpack(arrays, "f.npz")


def test_times_that_do_not_rise_are_told() -> None:
    arrays = pack(example_evaluation())
    with pytest.raises(FileError, match="the times do not rise"):
        unpack({**arrays, "times": arrays["times"][::-1]}, "f.npz")


# What reports read


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("times", np.array([-3.0, -2.0, -1.0])),
        ("times", np.array([0.0, 0.0, 1.0])),
        ("times", np.array([2.0, 1.0, 3.0])),
        ("times", np.array([0.0, np.nan, 1.0])),
        ("times", np.array([0.0, 1.0, np.inf])),
        ("times", np.array(["a", "b", "c"])),
        ("alone", np.array([0.0, 1e308, 1.0])),
        ("proxy", np.array([0.0, np.inf, 1.0])),
        ("reference", np.arange(3)),
    ],
)
def test_a_continuation_that_cannot_be_drawn_is_told(name: str, values: Any, tmp_path: Path) -> None:
    parts = dict.fromkeys(("times", "reference", "proxy", "alone"), np.arange(3.0) - 1)
    write_arrays(tmp_path / CONTINUATION, {**parts, name: values})
    with pytest.raises(FileError, match=r"continuation.npz .* Fix: run the command again"):
        read_run(tmp_path)


def test_a_continuation_of_one_time_is_told(tmp_path: Path) -> None:
    write_arrays(tmp_path / CONTINUATION, dict.fromkeys(("times", "reference", "proxy", "alone"), np.zeros(1)))
    with pytest.raises(FileError, match="times that do not rise"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"title": "\\ud800"}', '{"title": 1e999}', "\x00"])
def test_a_story_that_is_none_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / STORY).write_text(text)
    with pytest.raises(FileError, match="is not the story of a run"):
        read_run(tmp_path)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("draw", [figures.spectra, figures.horizons])
def test_names_are_drawn_as_they_are(draw: Any, name: str) -> None:
    pytest.importorskip("matplotlib")
    whole = example_evaluation()
    evaluation = replace(whole, lines=(replace(whole.lines[0], model=name), *whole.lines[1:]))
    drawn = svg(draw(evaluation), "one")
    assert re.search(rf">\s*{re.escape(name)}\s*</text>", drawn)


def test_powers_of_ten_are_drawn_as_powers() -> None:
    pytest.importorskip("matplotlib")
    assert re.search(r">\s*10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]\s*</text>", svg(figures.spectra(example_evaluation()), "one"))


def test_bands_of_a_sheet_are_named_as_they_are() -> None:
    pytest.importorskip("matplotlib")
    assert r"$\frac{$" in svg(timeline.sheet(np.ones((4, 3)), what=r"$\frac{$"), "one")


# Checkpoints


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("hashes.steps", np.array([0, 100])),
        ("hashes.steps", np.array([200, 100])),
        ("hashes.steps", np.array([100, 800])),
        ("hashes.steps", np.array([100, 100])),
        ("step", np.array(0)),
        ("step", np.array(50)),
    ],
)
def test_steps_of_a_checkpoint_are_those_of_its_run(name: str, values: Any, tmp_path: Path) -> None:
    hashes = (Hash(100, "0" * 32), Hash(200, "1" * 32))
    operator, looking = Linear(np.eye(2)), (Hashes(100),)
    now = Run(operator=operator.facts, steps=700, state=np.zeros((1, 2)), records={"hashes": hashes}, observers=looking)
    file = tmp_path / "c.npz"
    write_checkpoint(file, "mine", now)
    assert read_checkpoint(file, "mine", operator, looking, (1, 2)).hashes == hashes
    write_arrays(file, {**read_arrays(file), name: values})
    with pytest.raises(FileError, match=r"is damaged: the steps of hashes .* Fix: start anew"):
        read_checkpoint(file, "mine", operator, looking, (1, 2))


def test_a_checkpoint_of_a_flow_with_steps_that_are_not_its_own_is_told(tmp_path: Path) -> None:
    flow = Flow(n=8)
    states = ensemble(flow, "random", [0], peak=2)
    with CpuDevice() as cpu:
        run = simulate(flow, states, 2, device=cpu, look_every=1, hash_every=1, host_fft=True)
    file = tmp_path / "checkpoint.npz"
    write_checkpoint(file, "mine", run)
    asked: Any = ("mine", Vorticity(flow), (Diagnostics(flow, 1), Hashes(1)), states.shape)
    good = read_arrays(file)
    looks: Any = good["diagnostics.steps"]
    for change in (
        {"hashes.steps": np.array([0, 1])},
        {"hashes.steps": np.array([2, 1])},
        {"hashes.steps": np.array([1.0, 2.0])},
        {"diagnostics.steps": looks[::-1].copy()},
        {"diagnostics.steps": looks + 5},
        {"step": np.array(0)},
        {"diagnostics.energy_spectrum": np.full(good["diagnostics.energy_spectrum"].shape, 1)},
    ):
        write_arrays(file, {**good, **change})
        with pytest.raises(FileError, match="damaged"):
            read_checkpoint(file, *asked)
    write_arrays(
        file, {**good, "diagnostics.energy_spectrum": np.full(good["diagnostics.energy_spectrum"].shape, 1e308)}
    )
    assert np.isposinf(read_checkpoint(file, *asked).records["diagnostics"][0].energy).all()


def test_sums_beyond_the_largest_number_are_infinite() -> None:
    assert totals(np.array([[1e308, 1e308], [1.0, 2.0], [np.nan, 1.0]])).tolist()[:2] == [np.inf, 3.0]


# Flows and models


@pytest.mark.parametrize("name", ["n", "nu", "dt", "length", "drag", "smagorinsky"])
@pytest.mark.parametrize("value", [HUGE, -HUGE, 1e308, float("nan"), float("inf"), "1", None])
def test_numbers_of_a_flow_that_are_none_are_refused(name: str, value: Any) -> None:
    parameters = {**Flow(n=8).parameters, name: value}
    with pytest.raises(InputError, match="Fix: "):
        restore("vorticity", {}, parameters)


@pytest.mark.parametrize("name", ["k_cut", "mid_cut", "length"])
@pytest.mark.parametrize("value", [HUGE, 1e308, float("nan"), "1", None])
def test_numbers_of_a_schema_that_are_none_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match="Fix: "):
        Schema.restore({**Schema(16, 2.0).parameters, name: value})


@pytest.mark.parametrize(("name", "value"), [("smagorinsky", HUGE), ("n", HUGE), ("dt", 1e308), ("scheme", "\ud800")])
def test_a_store_of_fields_of_no_flow_is_told(name: str, value: Any, tmp_path: Path) -> None:
    attributes = {f"flow_{key}": one for key, one in {**Flow(n=8).parameters, name: value}.items()}
    field = Variable(("member", "y", "x"), "float32", (1, 8, 8), {}, "time")
    line = series_variable("time", (), (), "int64")
    store = FieldStore(tmp_path / "f.zarr", {"vorticity": field, "step": line}, attributes)
    store.series("step", np.arange(2))
    store.commit()
    with pytest.raises(FileError, match="describes no flow that this dashi knows"):
        windows_from_run(tmp_path / "f.zarr")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"parameter_flow_dt": np.array(1e308)}, "dt is 1e"),
        ({"parameter_flow_dt": np.array(5e-324)}, "steps"),
        ({"interval": np.array(1e308)}, "steps"),
        ({"array_guarantee": np.zeros(2)}, "has no 'guarantee'"),
        ({"parameter_guarantee": np.array("x")}, "'guarantee' is none of its parameters"),
        ({"parameter_flow_dt": np.zeros(2)}, "dt is"),
        ({"guarantee": np.array("x")}, "has no 'guarantee'"),
    ],
)
def test_a_model_with_numbers_that_are_none_or_too_many_is_refused(change: dict[str, Any], text: str) -> None:
    flow, schema = Flow(n=16), Schema(16, 2.0)
    model = MODELS["perfect"].restore(schema, 0.1, {}, {f"flow_{k}": v for k, v in flow.parameters.items()})
    assert unpack_model(pack_model(model)).interval == 0.1
    with pytest.raises(FileError, match=rf"the file: .*{text}.* Fix: "):
        unpack_model({**pack_model(model), **change})


def test_text_that_nobody_could_write_is_refused(tmp_path: Path) -> None:
    for code in (0xD800, 0x110000):
        text = np.frombuffer(np.array([code], "<u4").tobytes(), "<U1")
        np.savez(tmp_path / "a.npz", text=text)
        with pytest.raises(FileError, match="holds text with letters that there are none of"):
            read_arrays(tmp_path / "a.npz")
