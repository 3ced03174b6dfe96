"""Programs can be printed and drawn: steps, memory, barriers."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.errors import ClosedError
from dashi.runtime import Device, Program, open_device
from dashi.runtime._vulkan_device import VulkanDevice


def build(device: Device) -> Program:
    x = device.array(np.ones((2, 64), np.float32))
    y = device.bind("add", x[0], x[1])
    z = device.bind("scale", y.outputs[0], a=2.0)
    return device.program([y, z, y], label='a "sum"', fetch=z.outputs)


def test_a_program_is_printed_with_its_memory_and_barriers(vulkan: VulkanDevice) -> None:
    program = build(vulkan)
    assert str(program.describe()) == (
        "program 'a \"sum\"' on vulkan:0, queue 0: 3 steps, 3 dispatches, 2 barriers\n"
        "  b0: f32 (64,)\n"
        "  b1: f32 (64,)\n"
        "  b2: f32 (64,)\n"
        "    0 add f32    b0, b0+256 -> b1\n"
        "  ---- barrier ----\n"
        "    1 scale f32  b1 -> b2\n"
        "  ---- barrier ----\n"
        "    2 add f32    b0, b0+256 -> b1\n"
        "  to the host: b2"
    )


def test_a_program_without_barriers_is_printed_too() -> None:
    with open_device("cpu") as device:
        text = str(build(device).describe())
    assert "barrier ----" not in text
    assert "    0 add f32    b0, b0+256 -> b1\n    1 scale f32  b1 -> b2\n" in text


def test_the_null_device_says_where_barriers_would_stand() -> None:
    with open_device("null") as device:
        text = str(build(device).describe())
    assert "    0 add f32    b0, b0+256 -> b1\n  ---- barrier ----\n    1 scale f32  b1 -> b2\n" in text


def test_a_program_is_drawn(vulkan: VulkanDevice) -> None:
    drawn = build(vulkan).describe().dot()
    assert drawn.startswith('digraph program {\n  label="program \'a \\"sum\\"\' on vulkan:0')
    assert '  s0 [shape=box, label="0 add f32"];\n  "b0" -> s0;\n  "b0" -> s0;\n  s0 -> "b1";' in drawn
    assert '  s0 -> s1 [style=dashed, label="barrier"];' in drawn
    assert drawn.count("{") == drawn.count("}") == 1


def test_a_notebook_shows_it_and_a_closed_one_is_refused(device: Device) -> None:
    x = device.array(np.ones(3, np.float32))
    step = device.bind("add", x, x)
    x.close()  # the step keeps the memory
    program = device.program([step], label="<b>")
    assert program._repr_html_().startswith("<pre>program &#x27;&lt;b&gt;&#x27;")
    program.close()
    assert "closed" in program._repr_html_()
    with pytest.raises(ClosedError):
        program.describe()
