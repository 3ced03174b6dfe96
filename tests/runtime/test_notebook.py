"""What notebooks show: HTML of devices, arrays, runs and scores, in which every word is escaped."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np

import dashi
from dashi.core.observations.observation import Hash
from dashi.core.operators.affine import Linear
from dashi.core.rollouts.run import Run
from dashi.flow.evaluation.spread import Spread
from dashi.flow.evaluation.table import ScoreRow, ScoreTable
from dashi.runtime._cpu_device import CpuDevice, cpu_info
from dashi.runtime._notebook import html_facts, html_table, html_text
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceList

HOSTILE = "<script>alert('&')</script>"


def html(thing: Any) -> str:
    """As a notebook asks for it."""
    return thing._repr_html_()


class Reader(HTMLParser):
    """The tags and the text of a page; a tag that is not closed fails."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.open, self.words = set[str](), list[str](), list[str]()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_every_word_is_escaped() -> None:
    for page in (
        html_table([HOSTILE], [[HOSTILE, 1]], HOSTILE), html_facts(HOSTILE, [(HOSTILE, HOSTILE)]), html_text(HOSTILE),
        html(replace(cpu_info(), name=HOSTILE)), html(DeviceList([replace(cpu_info(), name=HOSTILE)])),
        html(ScoreTable([score(HOSTILE)])),
    ):  # fmt: skip
        reader = Reader(page)
        assert "script" not in reader.tags
        assert HOSTILE in "".join(reader.words)


def test_devices_are_tables() -> None:
    with CpuDevice() as device:
        text = Reader(html(device)).words
        assert {"Device cpu", device.info.name, "open"} <= set(text)
    assert "closed" in Reader(html(device)).words
    listed = dashi.devices()
    assert isinstance(listed, list)
    assert {"cpu", "null"} <= set(Reader(html(listed)).words)


def test_a_small_array_shows_its_values() -> None:
    with CpuDevice() as device:
        array = device.array(np.array([1.5, 2.5]))
        assert Reader(html(array)).words == [repr(array)]


def test_a_run_shows_how_far_it_came_and_its_last_hash() -> None:
    facts = Linear(np.eye(3, dtype=np.float32)).facts
    hashes = (Hash(500, "0" * 32), Hash(1000, "a" * 32))
    run = Run(operator=facts, steps=1000, state=np.zeros((2, 3), np.float32), records={"hashes": hashes}, seconds=2.0)
    words = Reader(html(run)).words
    assert {"Run", "1,000", "float32 (2, 3)", "2 s (500 steps/s)", f"{'a' * 32} after step 1,000"} <= set(words)
    assert "1,000, stopped before all were done" in Reader(html(replace(run, stopped=True))).words
    assert "last hash" not in Reader(html(Run(operator=facts, steps=0, state=np.zeros(1)))).words


def score(model: str) -> ScoreRow:
    """A row of made-up scores."""
    some = Spread(0.5, 0.25, 0.75)
    return ScoreRow(
        "test", model, 8, 2, {0.5: some, 0.9: some}, some, some, some, some, some, 0.5, {"none": 1, "drift": 1}, 1
    )


def test_scores_print_as_a_table() -> None:
    scores = ScoreTable([score("galerkin"), score("dmd")])
    assert len(scores) == 2
    head, first, second = str(scores).splitlines()
    assert head.split()[:4] == ["split", "model", "t(0.9)", "t(0.5)"]
    assert first.startswith("test   galerkin  0.5 [0.25, 0.75]")
    assert second.index("0.5") == first.index("0.5")
    assert first.endswith("50%         1 drift")
    assert {"galerkin", "0.5 [0.25, 0.75]"} <= set(Reader(html(scores)).words)


def test_devices_complete_to_what_all_devices_have(device: Device) -> None:
    names = dir(device)
    assert {"array", "run", "program", "info", "wait"} <= {*names}
    assert not {"graveyard", "allocator", "raw", "sets", "plans"} & {*names}


def test_what_is_known_of_a_device_prints_without_its_extensions(device: Device) -> None:
    assert device.info.name in repr(device.info)
    assert "VK_" not in repr(device.info)
