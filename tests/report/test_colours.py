"""Claims about colours and dashes: every two lines of a figure can be told apart, by any eyes, in light and in dark."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dashi.report import _style as style
from dashi.report._style import VARIABLES, LineStyle, looks

NAMES = ("reference", "perfect", "galerkin", "slaved", "truncation", "ridge", "delay", "dmd", "persistence", "damped")
EYES = {
    "trichromat": np.eye(3),
    "protanope": np.array([
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranope": np.array([
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ]),
    "tritanope": np.array([
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip
"""What linear RGB becomes to each (G. Machado and others, IEEE Trans. Vis. Comput. Graph. 15, 2009, severity 1)."""
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def themes() -> dict[str, dict[str, str]]:
    """The page's own colours by name, of light and of dark."""
    text = Path(style.__file__).with_name("page.css").read_text()
    light, dark = text.split("@media (prefers-color-scheme: dark)", 1)
    return {
        name: dict(re.findall(r"(--\w+): (#\w{6})", part.split("}", 1)[0]))
        for name, part in (("light", light), ("dark", dark))
    }


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour: str, eyes: np.ndarray) -> np.ndarray:
    xyz = XYZ @ np.clip(eyes @ linear(colour), 0, 1) / (0.95047, 1.0, 1.08883)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(a: LineStyle, b: LineStyle, theme: dict[str, str], eyes: np.ndarray) -> float:
    """CIE 1976; 2.3 is just noticed side by side."""
    one, other = (lab(theme[VARIABLES[look.colour]], eyes) for look in (a, b))
    return float(np.linalg.norm(one - other))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eyes", EYES)
def test_lines_of_one_pattern_have_colours_far_apart_for_all_eyes(theme: str, eyes: str) -> None:
    drawn, colours = looks(NAMES), themes()[theme]
    for a, b in combinations(NAMES, 2):
        if drawn[a].dashes == drawn[b].dashes:
            assert distance(drawn[a], drawn[b], colours, EYES[eyes]) >= 20, (a, b)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_reference_and_baselines_differ_in_colour_and_in_pattern(theme: str) -> None:
    names, colours = ("reference", "perfect", "persistence", "damped"), themes()[theme]
    drawn = looks(names)
    for a, b in combinations(names, 2):
        assert drawn[a].dashes != drawn[b].dashes
        assert distance(drawn[a], drawn[b], colours, EYES["trichromat"]) >= 25, (a, b)
        for eyes in EYES.values():
            assert distance(drawn[a], drawn[b], colours, eyes) >= 9, (a, b)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_stand_out_from_the_card(theme: str) -> None:
    """WCAG 2.2, 1.4.11: by 3 to 1."""
    colours = themes()[theme]
    ground = float(linear(colours["--card"]) @ XYZ[1])
    for look in looks(NAMES).values():
        light = float(linear(colours[VARIABLES[look.colour]]) @ XYZ[1])
        assert (max(light, ground) + 0.05) / (min(light, ground) + 0.05) >= 3, look


def test_no_two_lines_are_drawn_alike_whatever_their_names() -> None:
    names = (*NAMES, *(f"model {number}" for number in range(20)))
    drawn = looks(names)
    assert len({(look.colour, look.dashes) for look in drawn.values()}) == len(names)


def test_a_swatch_is_a_piece_of_the_line_itself() -> None:
    persistence, galerkin = looks(["persistence", "galerkin"]).values()
    strokes = " ".join(f"{persistence.width * part:.3g}" for part in persistence.drawn["linestyle"][1])
    assert f'stroke-dasharray="{strokes}"' in persistence.swatch
    assert f'stroke="var({VARIABLES[persistence.colour]})"' in persistence.swatch
    assert "stroke-dasharray" not in galerkin.swatch
