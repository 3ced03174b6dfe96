"""Random numbers, and samples of logits: Philox by (seed, request, position), the index in the row, and the stream.

The control words come in with a run: by custom as the input `rng`, which `rng_words` makes values for. Rows of words
are rows of numbers, each alone: a number depends on its own words, index and stream, and on nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError, InputError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.kernels.abi import Number
from dashi.kernels.random._draws import KINDS
from dashi.types import HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Builder, Tensor

RNG_INPUT: Final = "rng"
"""The input whose control words `set_rng` of a pipeline sets."""
_WORDS: Final = 4
_MOST: Final = (1 << 32) - 1


def rng_input(builder: Builder, rows: int | None = None, name: str = RNG_INPUT) -> Tensor:
    """The input of the control words: (seed low, seed high, request, position), or a row of them for each of `rows`."""
    return builder.input(name, (_WORDS,) if rows is None else (rows, _WORDS), "u32")


def rng_words(seed: int, request: Any = 0, position: Any = 0, shape: Shape = (_WORDS,)) -> HostArray:
    """Control words: a seed of 64 bits, and a request and a position of 32, each a number or one for each row."""
    if type(seed) is not int or not 0 <= seed < 1 << 64:
        raise InputError(f"{seed!r} is no seed.", "pass an integer from 0 to 2^64 - 1.")
    if not shape or shape[-1] != _WORDS:
        raise InputError(f"control words are no array of shape {shape}.", f"let the last length be {_WORDS}.")
    words = np.empty(shape, np.uint32)
    words[..., 0], words[..., 1] = seed & _MOST, seed >> 32
    for place, (title, value) in enumerate((("request", request), ("position", position))):
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "iu" or not ((numbers >= 0) & (numbers <= _MOST)).all():
            raise InputError(f"the {title} {value!r} is no number of 32 bits.", "pass integers from 0 to 2^32 - 1.")
        try:
            words[..., 2 + place] = numbers
        except ValueError as error:
            raise InputError(
                f"{numbers.shape} values of {title} for rows of {shape[:-1]}.", "pass a number, or one for each row."
            ) from error
    return words


@checked
def random_uniform(
    rng: Tensor, shape: Sequence[int], *, stream: int = 0, low: float = 0.0, high: float = 1.0
) -> Tensor:
    """Numbers from `low` up to, but without, `high` (where rounding keeps them apart), float32: for each row of control
    words an array of that shape. Draws of one graph differ in their `stream`."""
    drawn = rng.builder.add(RANDOM, rng, shape=shape, stream=stream, kind="uniform")
    return drawn if (low, high) == (0.0, 1.0) else drawn * (high - low) + low


@checked
def random_normal(
    rng: Tensor, shape: Sequence[int], *, stream: int = 0, mean: float = 0.0, scale: float = 1.0
) -> Tensor:
    """Gaussian numbers with that mean and standard deviation, float32: for each row of control words an array of that
    shape. Draws of one graph differ in their `stream`."""
    drawn = rng.builder.add(RANDOM, rng, shape=shape, stream=stream, kind="normal")
    return drawn if (mean, scale) == (0.0, 1.0) else drawn * scale + mean


@checked
def sample(logits: Tensor, rng: Tensor, *, temperature: float = 1.0, stream: int = 0) -> Tensor:
    """An index (uint32) for each row of logits (..., n), drawn with the probabilities softmax(logits / temperature);
    with the temperature 0 the largest logit's. Each row has control words of its own: (..., 4)."""
    rows = logits.shape[:-1]
    if len(rng.shape) == 1 and rows:
        if math.prod(rows) != 1:
            raise GraphError(
                f"one row of control words for {math.prod(rows)} rows of logits would draw the same number for each.",
                "pass a row of words for each: rng_input(builder, rows).",
            )
        rng = rng.reshape(*rows, _WORDS)
    return logits.builder.add(SAMPLE, logits, rng, temperature=float(temperature), stream=stream)


def _stream(node: Node) -> int:
    stream = node.integer("stream")
    if not 0 <= stream <= _MOST:
        raise GraphError(f"stream={stream} has no 32 bits.", "pass an integer from 0 to 2^32 - 1.")
    return stream


def _require_words(kind: TensorType) -> Shape:
    """The rows of control words."""
    if kind.dtype.name != "u32" or not kind.shape or kind.shape[-1] != _WORDS:
        raise GraphError(f"{kind} are no control words.", "pass u32[..., 4]: see rng_input.")
    return kind.shape[:-1]


def _infer_random(node: Node, types: Sequence[TensorType]) -> TensorType:
    rows, shape = _require_words(types[0]), node.integers("shape")
    _stream(node)
    if node.get("kind") not in KINDS:
        raise GraphError(f"there are no numbers of the kind {node.get('kind')!r}.", f"use {', '.join(KINDS)}.")
    if any(length < 0 for length in shape) or math.prod(shape) > _MOST:
        raise GraphError(f"{shape} is no shape of a row.", "pass lengths with a product below 2^32.")
    return TensorType((*rows, *shape), dtype_of("f32"))


def _random_scalars(node: Node) -> dict[str, Number]:
    kind = KINDS.index(str(node.get("kind")))
    return {"count": math.prod(node.integers("shape")), "kind": kind, "stream": _stream(node)}


def _launch_random(node: Node, types: Sequence[TensorType]) -> Launch:
    rows, scalars = types[0].size // _WORDS, _random_scalars(node)
    return Launch(kernels.get("random_draw"), ((rows, _WORDS),), (rows, int(scalars["count"])), scalars)


def _evaluate_random(node: Node, words: HostArray) -> HostArray:
    drawn = kernels.get("random_draw").reference(words.reshape(-1, _WORDS), **_random_scalars(node))
    return np.asarray(drawn).reshape(node.shape)


def _infer_sample(node: Node, types: Sequence[TensorType]) -> TensorType:
    logits, rows = types[0], _require_words(types[1])
    if logits.dtype.name != "f32" or not logits.shape or not logits.shape[-1] or logits.shape[:-1] != rows:
        raise GraphError(
            f"{logits} cannot be sampled with the control words {types[1]}.",
            "pass float32, and a row of words for each.",
        )
    _stream(node)
    if not node.number("temperature") >= 0 or math.isinf(node.number("temperature")):
        raise GraphError(f"the temperature is {node.number('temperature')}.", "pass 0 or more.")
    return TensorType(rows, dtype_of("u32"))


def _sample_scalars(node: Node) -> dict[str, Number]:
    return {"temperature": node.number("temperature"), "stream": _stream(node)}


def _launch_sample(node: Node, types: Sequence[TensorType]) -> Launch:
    rows, count = math.prod(node.shape), types[0].shape[-1]
    return Launch(kernels.get("sample_logits"), ((rows, count), (rows, _WORDS)), (rows,), _sample_scalars(node))


def _evaluate_sample(node: Node, logits: HostArray, words: HostArray) -> HostArray:
    flat = logits.reshape(-1, logits.shape[-1]), words.reshape(-1, _WORDS)
    return np.asarray(kernels.get("sample_logits").reference(*flat, **_sample_scalars(node))).reshape(node.shape)


RANDOM: Final = Op("random", _infer_random, _evaluate_random, arity=(1, 1), launch=_launch_random)
SAMPLE: Final = Op("sample", _infer_sample, _evaluate_sample, arity=(2, 2), launch=_launch_sample)
OPS: Final = (RANDOM, SAMPLE)
