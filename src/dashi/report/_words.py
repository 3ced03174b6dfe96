"""What the words of a page mean, in a line each: those that the page uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Final

WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "vorticity": (
        r"vorticity",
        "The local spin of the flow, ∂v/∂x − ∂u/∂y: red turns counter-clockwise, blue clockwise.",
    ),
    "flow time": (r"flow time", "Time in the units of the equation (T), not that which a computation takes."),
    "eddy turnover": (
        r"turnover",
        "The time in which a typical eddy turns over: the integral scale over the root mean square speed.",
    ),
    "reference": (r"\breference\b", "The full solution, on all grid points: what predictions are compared with."),
    "proxy": (
        r"\bprox(?:y|ies)\b",
        "A compact state that stands for the whole field: the Fourier modes of its large scales.",
    ),
    "model": (r"\bmodel", "A rule that takes the proxy from one frame to the next."),
    "alone": (
        r"\balone\b",
        "After its start a model sees no data any more: each of its states follows from its own last ones.",
    ),
    "window": (
        r"\bwindows?\b",
        "A stretch of one simulated run: a model starts at its first frame and is scored until its last.",
    ),
    "seed": (r"\bseeds?\b", "The number that a random start is drawn from: another seed is another run of the flow."),
    "holds": (
        r"\bholds?\b|\bheld\b",
        "A prediction holds as long as its correlation with the full field stays above a threshold (0.5 unless said).",
    ),
    "horizon": (r"\bhorizons?\b", "The flow time for which a prediction holds."),
    "persistence": (
        r"\bpersistence\b",
        "The prediction that nothing changes. A model that is not better knows nothing.",
    ),
    "perfect": (
        r"\bperfect\b",
        "The full solver, started from the proxy alone: how far one can see without the small scales of the start.",
    ),
    "k_cut": (r"\bk_cut\b|the cut\b", "The largest wave number that the proxy holds."),
    "nu, nu_e": (r"\bnu_e\b", "The viscosity of the flow, and the one added for the scales that a model leaves out."),
    "hash": (r"\bhash(?:es)?\b", "A fingerprint of a state's bits: other bits have, in practice, never the same one."),
    "hot loop": (r"hot loop", "The steps of the run: where nearly all of its time goes."),
}
"""A pattern that finds the word, and what it means."""


def glossary(page: str) -> str:
    """The words that a page uses, folded; `page` is its HTML."""
    text = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    rows = [
        f"<div><dt>{escape(word)}</dt><dd>{escape(meaning)}</dd></div>"
        for word, (pattern, meaning) in WORDS.items()
        if re.search(pattern, text)
    ]
    if not rows:
        return ""
    return f'<details class="words"><summary>Words on this page</summary><dl>{"".join(rows)}</dl></details>\n'
