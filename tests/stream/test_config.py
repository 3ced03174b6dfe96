"""Configurations: what they may say, and the error, with file, line and fix, for everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import DashiError, FileError, StreamConfigError
from dashi.stream import Feed, FieldSource, load, parse, schema
from dashi.stream import _yaml as yaml_reader

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "stream" / "worked_example.yaml"

SMALL = """\
stages:
  - {id: a, device: cpu, max_semantic_depth: 1, ops: [scale]}
  - {id: b, device: cpu, max_semantic_depth: 2, ops: [square]}
links:
  - {from: a, to: b}
ops:
  scale: {inputs: {x: z}, params: {a: 2}, outputs: {result: y}}
  square: {inputs: {x: y}}
source:
  fields:
    z: {shape: [4]}
"""


def test_the_published_schema_is_the_one_of_the_code() -> None:
    published = (ROOT / "docs" / "stream-schema.json").read_text()
    assert published == schema(), "write it anew: dashi.stream.schema()"
    document = json.loads(published)
    assert document["required"] == ["stages"]
    assert document["additionalProperties"] is False
    assert {"from", "to", "mode", "codec", "window"} <= set(document["$defs"]["LinkSection"]["properties"])


def test_the_worked_example_says_what_its_page_says() -> None:
    config = load(EXAMPLE)
    assert config.determinism_tier == 1
    assert config.window == 3
    assert [(s.id, s.device, s.max_semantic_depth, s.ops) for s in config.stages] == [
        ("cpu0", "cpu", 1, ("pq_pack_bits", "pq_lut_build")),
        ("gpu0", "gpu_weak", 2, ("gemv_tiled", "fma3")),
        ("gpu1", "gpu_mid", 3, ("spmv_csr", "nonlinear_admissibility_squash")),
        ("gpu2", "gpu_strong", 4, ("operator_step", "clamp", "defect_local", "reduce_max")),
    ]
    assert [(link.name, link.mode) for link in config.links] == [
        ("cpu0->gpu0", "HOST_STAGING"), ("gpu0->gpu1", "P2P"), ("gpu1->gpu2", "P2P"),
    ]  # fmt: skip
    assert config.ops["reduce_max"].observe_every == 10
    assert config.ops["gemv_tiled"].inputs == {"x": Feed("table", (256,))}
    assert config.where["stages", 1].endswith("worked_example.yaml:11")


def test_devices_are_bound_by_the_file_and_by_whoever_loads_it() -> None:
    config = load(EXAMPLE, devices={"gpu_weak": "cpu"})
    assert {name: (d.spec, d.kind) for name, d in config.devices.items()} == {
        "gpu_weak": ("cpu", "CPU"), "gpu_mid": ("vulkan:0", "GPU"), "gpu_strong": ("vulkan:0", "GPU"),
        "cpu": ("cpu", "CPU"),
    }  # fmt: skip


def test_numbers_of_devices_links_and_ops_can_be_given() -> None:
    config = parse(
        SMALL.replace("device: cpu, max_semantic_depth: 1", "device: mine, max_semantic_depth: 1")
        .replace("{from: a, to: b}", "{from: a, to: b, codec: prune, keep: 0.5, window: 2, seconds: 1e-3}")
        .replace("square: {", "square: {seconds: {cpu: 2e-3}, depth_out: 2, migratable: false, ")
        + "devices:\n  mine: {spec: cpu, fp32_gflops: 10, latency_class: high, features: [fp64]}\n"
    )
    device, (link,), square = config.devices["mine"], config.links, config.ops["square"]
    assert (device.fp32_gflops, device.latency_class, device.features) == (10.0, "high", {"fp64"})
    assert (link.codec, link.codec_options, link.window, link.seconds) == ("prune", {"keep": 0.5}, 2, 1e-3)
    assert (square.seconds, square.depth_out, square.migratable) == ({"cpu": 2e-3}, 2, False)


def test_constants_are_numbers_lists_of_them_or_described_arrays() -> None:
    text = SMALL.replace("params: {a: 2}", "params: {a: [[1, 2], [3, 4.5]]}")
    values: Any = parse(text).ops["scale"].params["a"]
    assert np.array_equal(values, [[1, 2], [3, 4.5]])
    described: Any = parse(SMALL.replace("params: {a: 2}", "params: {a: {shape: [3], scale: 2}}"))
    source = described.ops["scale"].params["a"]
    assert isinstance(source, FieldSource)
    assert (source.form.shape, source.draw, source.numbers) == ((3,), "normal", {"scale": 2.0})


LARGE = ", ".join(f"z{i}: {{shape: [16777216]}}" for i in range(5))

WRONG = {
    "unknown key": ("window: 3\n", "windw: 3\n", r"c\.yaml:1: 'windw' is no key here. Fix: did you mean window"),
    "unknown key of a stage": ("id: a,", "id: a, roles: [x],", r"c\.yaml:3: 'roles' is no key here.* Fix: use one"),
    "unknown key of an op": ("params: {a: 2}", "parms: {a: 2}", r"c\.yaml:8: 'parms' is no key.*did you mean params"),
    "unknown key of a link": ("to: b}", "to: b, mod: P2P}", r"c\.yaml:6: 'mod' is no key here. Fix: did you mean mode"),
    "no stages": ("stages:", "devices: {}\nstags:", r"c\.yaml:\d+: "),
    "missing key": ("{from: a, to: b}", "{from: a}", r"c\.yaml:6: links\.0 lacks the key 'to'. Fix: add `to:`."),
    "missing device": ("device: cpu, max_semantic_depth: 1", "device: gpu_weak, max_semantic_depth: 1",
                       r"c\.yaml:3: stage 'a' wants the device 'gpu_weak', which nothing binds. Fix: write `devices"),
    "link to nowhere": ("to: b}", "to: q}", r"c\.yaml:6: link a->q names the stage 'q', which is not there"),
    "cycle": ("{from: a, to: b}", "{from: b, to: a}", r"c\.yaml:6: link b->a goes back, so that the chain has a cycle"),
    "a link to itself": ("to: b}", "to: a}", r"c\.yaml:6: link a->a goes back"),
    "two links": ("  - {from: a, to: b}", "  - {from: a, to: b}\n  - {from: a, to: b}",
                  r"c\.yaml:7: there are two links"),
    "window 0": ("window: 3", "window: 0", r"c\.yaml:1: window: input should be greater than or equal to 1, it is 0"),
    "window 0 of a link": ("to: b}", "to: b, window: 0}", r"c\.yaml:6: links\.0\.window: input should be greater"),
    "window of a word": ("window: 3", "window: three", r"c\.yaml:1: window: input should be a valid integer"),
    "no such mode": ("to: b}", "to: b, mode: USB}", r"c\.yaml:6: links\.0\.mode: input should be 'P2P'"),
    "no such tier": ("window: 3", "determinism_tier: 4", r"c\.yaml:1: determinism_tier: input should be less than"),
    "two stages": ("id: b", "id: a", r"c\.yaml:4: two stages are called 'a'"),
    "an op twice": ("[square]", "[square, scale]", r"c\.yaml:2: scale stands twice in the chain"),
    "an op nowhere": ("  square: {", "  cube: {", r"c\.yaml:9: no stage has the op 'cube'. Fix: name one of scale"),
    "a chain as well": ("window: 3", "chain: [scale]", r"c\.yaml:1: stages have `ops`, and there is a `chain`"),
    "a node not there": ("id: b,", "id: b, node: left,", r"c\.yaml:6: link a->b is HOST_STAGING between .* two nodes"),
    "TCP on one node": ("to: b}", "to: b, mode: TCP}", r"c\.yaml:6: link a->b is TCP between stages on one node"),
    "keep without prune": ("to: b}", "to: b, keep: 0.5}", r"c\.yaml:6: `keep` and `codec: prune` belong together"),
    "no such group": ("id: a,", "id: a, offers: [fast],", r"c\.yaml:3: there is no group 'fast'"),
    "a limit missing": ("window: 3", "objective: throughput_under_latency", r"without `latency_limit`"),
    "no such dtype": ("z: {", "z: {dtype: f31, ", r"c\.yaml:12: z has the dtype 'f31'. Fix: did you mean f32"),
    "no such draw": ("z: {", "z: {draw: dice, ", r"c\.yaml:12: z: there is no way 'dice' to fill an array"),
    "a number of another draw": ("z: {", "z: {draw: ramp, low: 1, ", r"c\.yaml:12: z: 'ramp' has no number low"),
    "a file without a path": ("z: {", "z: {draw: file, ", r"c\.yaml:12: z: `path` and `draw: file` belong together"),
    "too many elements": ("shape: [4]", "shape: [65536, 65536]", r"c\.yaml:12: z of shape .* more than 16777216"),
    "a file elsewhere": ("z: {", "z: {draw: file, path: ../z.npy, ", r"c\.yaml:12: z lies in '\.\./z\.npy', outside"),
    "an absolute path": ("z: {", "z: {draw: file, path: /z.npy, ", r"c\.yaml:12: z lies in '/z\.npy', outside"),
    "too many in all": ("\n    z: {shape: [4]}", f" {{{LARGE}}}", r"describes have 83886080 elements, more than"),
    "ragged": ("a: 2}", "a: [[1], [2, 3]]}", r"c\.yaml:8: a of op 'scale' is no array of up to 8192 numbers"),
    "words in an array": ("a: 2}", "a: [x, y]}", r"c\.yaml:8: a of op 'scale' is no array"),
    "a broadcast after nothing": ("window: 3", "broadcast: {after: cube, to: [b]}", r"no op 'cube' to broadcast after"),
    "a broadcast to nowhere": ("window: 3", "broadcast: {after: scale, to: [q]}", r"no stage 'q' to broadcast to"),
    "a pin beside ops": ("square: {", "square: {stage: b, ", r"c\.yaml:9: op 'square' has a `stage`, and stands in"),
    "no device by luck": ("device: cpu, max_semantic_depth: 1", "device: auto, max_semantic_depth: 1",
                          r"c\.yaml:3: stage 'a' wants the device 'auto', which nothing binds"),
    "every 0": ("window: 3", "observers: {square: {every: 0}}", r"c\.yaml:1: observers\.square\.every: input"),
    "no YAML": ("window: 3", "window: [3", r"c\.yaml:\d+: this is not YAML"),
    "a key twice": ("window: 3", "window: 3\nwindow: 4", r"c\.yaml:2: 'window' stands twice .* first in line 1"),
    "an alias": ("window: 3", "nodes: &n [a]\ngroups: {g: *n}", r"c\.yaml:2: \*n stands for another part"),
    "an object": ("window: 3", "window: !!python/object:os.system {}",
                  r"c\.yaml:1: the tag 'tag:yaml.org,2002:python/object:os.system' says how .* no tags\. Fix: "),
    "no number by force": ("window: 3", 'window: !!int ""', r"c\.yaml:1: the tag 'tag:yaml.org,2002:int' says"),
    "no choice by force": ("window: 3", 'window: !!bool "x"', r"c\.yaml:1: the tag 'tag:yaml.org,2002:bool' says"),
    "no date by force": ("window: 3", 'window: !!timestamp "x"', r"c\.yaml:1: the tag '.*:timestamp' says"),
    "a list of a kind": ("window: 3", "nodes: !mine [a]", r"c\.yaml:1: the tag '!mine' says"),
    "a number without end": ("window: 3", f"window: -0x{'F' * 8000}",
                             r"c\.yaml:1: -0xF{17}\.\.\. has 8003 characters, more than a number needs \(100\)\."),
    "a parameter without end": ("a: 2}", f"a: 0x{'F' * 8000}}}", r"c\.yaml:8: 0xF+\.\.\. has 8002 characters"),
    "a parameter beyond 64 bits": ("a: 2}", f"a: {2**64 + 1}}}",
                                   r"c\.yaml:8: a of op 'scale' is a whole number beyond 64 bits\. Fix: write"),
    "steps without end": ("window: 3", f"observe_every: 0x{'F' * 90}", r"c\.yaml:1: observe_every: input should be"),
    "more digits than floats": ("window: 3", f"observe_every: 0x{'F' * 400}", r"c\.yaml:1: 0xF+\.\.\. has 402 char"),
    "every without end": ("window: 3", f"observers: {{square: {{every: {2**40 + 1}}}}}",
                          r"c\.yaml:1: observers\.square\.every: input should be less than or equal to 1099511627776"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_is_named_with_its_line_and_a_fix(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    text = "window: 3\n" + SMALL
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(StreamConfigError, match=message) as caught:
        load(file)
    assert str(caught.value).count(" Fix: ") == 1


def test_a_link_that_joins_no_neighbours_is_refused() -> None:
    text = SMALL.replace("links:", "  - {id: c, device: cpu, max_semantic_depth: 2}\nlinks:").replace(
        "to: b}", "to: c}"
    )
    with pytest.raises(
        StreamConfigError, match=r"configuration:6: link a->c does not join neighbours; b lies between."
    ):
        parse(text)


def test_a_node_that_is_not_there_is_refused() -> None:
    text = "nodes: [left, right]\n" + SMALL.replace("id: b,", "id: b, node: middle,")
    with pytest.raises(
        StreamConfigError, match=r"configuration:4: stage 'b' names the node 'middle', which is not there"
    ):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is a section with `stages`"),
        ("[1, 2]", "is a section with `stages`"),
        ("stages: []", "stages: tuple should have at least 1 item"),
        ("stages: [{id: a, device: cpu}]", "no stage has any op"),
        ("a: " + "[" * 30 + "]" * 30, "24 levels"),
        ("a: [" + "0," * 20_001 + "]", "more than 20000 parts"),
        ("--- {}\n--- {}", "holds 2 documents"),
        ("stages: \x00", "not YAML"),
        ("a: 2001-99-99", "is no key here|not YAML"),
    ],
)
def test_hostile_texts_are_refused_before_anything_is_built(text: str, message: str) -> None:
    with pytest.raises(StreamConfigError, match=message):
        parse(text)


def test_files_that_are_too_large_or_no_text_are_refused(tmp_path: Path) -> None:
    large, bytes_ = tmp_path / "large.yaml", tmp_path / "bytes.yaml"
    large.write_bytes(b"#" * (yaml_reader.MOST_BYTES + 1))
    bytes_.write_bytes(b"a: \xff")
    with pytest.raises(FileError, match=r"large\.yaml"):
        load(large)
    with pytest.raises(StreamConfigError, match="is not text in UTF-8"):
        load(bytes_)
    with pytest.raises(FileError, match=r"none\.yaml"):
        load(tmp_path / "none.yaml")


@given(st.text(alphabet="ab:[]{}-,&*!#'\"\n 01\x00\ud7ff?|>", max_size=60))
@settings(max_examples=200, deadline=None)
def test_whatever_a_file_holds_the_error_is_one_with_a_fix(text: str) -> None:
    with pytest.raises(DashiError, match=" Fix: "):
        parse(text)


def test_a_pin_to_a_stage_that_is_not_there_is_refused() -> None:
    text = "chain: [neg]\nstages: [{id: a, device: cpu}]\nops: {neg: {stage: b}}"
    with pytest.raises(StreamConfigError, match=r"configuration:3: there is no stage 'b'\. Fix: name one of a"):
        parse(text)
