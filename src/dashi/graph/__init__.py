"""Graphs of tensor ops, compiled once and run again and again, with the same bits on every device.

    b = dashi.graph.Builder("tiny")
    x = b.input("x", (2, 3))
    g = b.graph(y=dashi.graph.tanh(x) * 2.0)
    with dashi.open() as d, dashi.graph.compile(g, d) as pipeline:
        y = pipeline.dispatch({"x": values})["y"]

`evaluate(graph, inputs)` is the uncompiled run in NumPy. Every pipeline gives its bits: those of the graph after the
pass `rewrite`, which alone may change them and is named in the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.graph.builder import Builder as Builder
    from dashi.graph.builder import Tensor as Tensor
    from dashi.graph.calls import CallConfig as CallConfig
    from dashi.graph.compiler import compile as compile
    from dashi.graph.compiler import explain as explain
    from dashi.graph.compiler import host_steps as host_steps
    from dashi.graph.compiler import program_id as program_id
    from dashi.graph.debug import Debug as Debug
    from dashi.graph.evaluation import evaluate as evaluate
    from dashi.graph.handles import Resident as Resident
    from dashi.graph.ir import Graph as Graph
    from dashi.graph.ir import Node as Node
    from dashi.graph.ir import TensorType as TensorType
    from dashi.graph.ir import print_graph as print_graph
    from dashi.graph.op import Launch as Launch
    from dashi.graph.op import Op as Op
    from dashi.graph.ops.activations import elu as elu
    from dashi.graph.ops.activations import gelu as gelu
    from dashi.graph.ops.activations import gelu_tanh as gelu_tanh
    from dashi.graph.ops.activations import hard_sigmoid as hard_sigmoid
    from dashi.graph.ops.activations import hard_swish as hard_swish
    from dashi.graph.ops.activations import leaky_relu as leaky_relu
    from dashi.graph.ops.activations import mish as mish
    from dashi.graph.ops.activations import selu as selu
    from dashi.graph.ops.activations import silu as silu
    from dashi.graph.ops.activations import tan as tan
    from dashi.graph.ops.attention import attention as attention
    from dashi.graph.ops.attention_block import attention_block as attention_block
    from dashi.graph.ops.contractions import dot_general as dot_general
    from dashi.graph.ops.contractions import grouped_matmul as grouped_matmul
    from dashi.graph.ops.control import repeat as repeat
    from dashi.graph.ops.control import scan as scan
    from dashi.graph.ops.control import select as select
    from dashi.graph.ops.convolution import conv as conv
    from dashi.graph.ops.convolution import conv_transpose as conv_transpose
    from dashi.graph.ops.convolution import im2col as im2col
    from dashi.graph.ops.elementwise import absolute as absolute
    from dashi.graph.ops.elementwise import atan as atan
    from dashi.graph.ops.elementwise import atan2 as atan2
    from dashi.graph.ops.elementwise import bit_and as bit_and
    from dashi.graph.ops.elementwise import bit_or as bit_or
    from dashi.graph.ops.elementwise import bit_xor as bit_xor
    from dashi.graph.ops.elementwise import cast as cast
    from dashi.graph.ops.elementwise import ceil as ceil
    from dashi.graph.ops.elementwise import clip as clip
    from dashi.graph.ops.elementwise import cos as cos
    from dashi.graph.ops.elementwise import divide as divide
    from dashi.graph.ops.elementwise import equal as equal
    from dashi.graph.ops.elementwise import erf as erf
    from dashi.graph.ops.elementwise import exp as exp
    from dashi.graph.ops.elementwise import floor as floor
    from dashi.graph.ops.elementwise import fma as fma
    from dashi.graph.ops.elementwise import greater as greater
    from dashi.graph.ops.elementwise import greater_equal as greater_equal
    from dashi.graph.ops.elementwise import is_infinite as is_infinite
    from dashi.graph.ops.elementwise import is_nan as is_nan
    from dashi.graph.ops.elementwise import less as less
    from dashi.graph.ops.elementwise import less_equal as less_equal
    from dashi.graph.ops.elementwise import log as log
    from dashi.graph.ops.elementwise import logical_and as logical_and
    from dashi.graph.ops.elementwise import logical_not as logical_not
    from dashi.graph.ops.elementwise import logical_or as logical_or
    from dashi.graph.ops.elementwise import logical_xor as logical_xor
    from dashi.graph.ops.elementwise import maximum as maximum
    from dashi.graph.ops.elementwise import minimum as minimum
    from dashi.graph.ops.elementwise import mod as mod
    from dashi.graph.ops.elementwise import not_equal as not_equal
    from dashi.graph.ops.elementwise import power as power
    from dashi.graph.ops.elementwise import reciprocal as reciprocal
    from dashi.graph.ops.elementwise import relu as relu
    from dashi.graph.ops.elementwise import round_ as round_
    from dashi.graph.ops.elementwise import rsqrt as rsqrt
    from dashi.graph.ops.elementwise import shift_left as shift_left
    from dashi.graph.ops.elementwise import shift_right as shift_right
    from dashi.graph.ops.elementwise import sigmoid as sigmoid
    from dashi.graph.ops.elementwise import sign as sign
    from dashi.graph.ops.elementwise import sin as sin
    from dashi.graph.ops.elementwise import softplus as softplus
    from dashi.graph.ops.elementwise import sqrt as sqrt
    from dashi.graph.ops.elementwise import square as square
    from dashi.graph.ops.elementwise import tanh as tanh
    from dashi.graph.ops.elementwise import trunc as trunc
    from dashi.graph.ops.elementwise import truncated_mod as truncated_mod
    from dashi.graph.ops.elementwise import where as where
    from dashi.graph.ops.indexing import gather as gather
    from dashi.graph.ops.indexing import gather_elements as gather_elements
    from dashi.graph.ops.indexing import gather_nd as gather_nd
    from dashi.graph.ops.joining import concat as concat
    from dashi.graph.ops.movement import expand as expand
    from dashi.graph.ops.movement import narrow as narrow
    from dashi.graph.ops.movement import reshape as reshape
    from dashi.graph.ops.movement import reverse as reverse
    from dashi.graph.ops.movement import slice_ as slice_
    from dashi.graph.ops.movement import split as split
    from dashi.graph.ops.movement import stop_gradient as stop_gradient
    from dashi.graph.ops.movement import transpose as transpose
    from dashi.graph.ops.norms import batch_norm as batch_norm
    from dashi.graph.ops.norms import group_norm as group_norm
    from dashi.graph.ops.norms import instance_norm as instance_norm
    from dashi.graph.ops.norms import layer_norm_2d as layer_norm_2d
    from dashi.graph.ops.order import argmax as argmax
    from dashi.graph.ops.order import argmin as argmin
    from dashi.graph.ops.order import argsort as argsort
    from dashi.graph.ops.order import sort as sort
    from dashi.graph.ops.order import top_k as top_k
    from dashi.graph.ops.packed import dequantize as dequantize
    from dashi.graph.ops.pools import average_pool as average_pool
    from dashi.graph.ops.pools import global_average_pool as global_average_pool
    from dashi.graph.ops.pools import global_max_pool as global_max_pool
    from dashi.graph.ops.pools import max_pool as max_pool
    from dashi.graph.ops.positions import rope as rope
    from dashi.graph.ops.positions import rope_tables as rope_tables
    from dashi.graph.ops.positions import write_rows as write_rows
    from dashi.graph.ops.products import matmul as matmul
    from dashi.graph.ops.quantization import dequantize_linear as dequantize_linear
    from dashi.graph.ops.quantization import quantize_linear as quantize_linear
    from dashi.graph.ops.random import random_normal as random_normal
    from dashi.graph.ops.random import random_uniform as random_uniform
    from dashi.graph.ops.random import rng_input as rng_input
    from dashi.graph.ops.random import rng_words as rng_words
    from dashi.graph.ops.random import sample as sample
    from dashi.graph.ops.recurrent import CellOptions as CellOptions
    from dashi.graph.ops.recurrent import gru as gru
    from dashi.graph.ops.recurrent import lstm as lstm
    from dashi.graph.ops.recurrent import rnn as rnn
    from dashi.graph.ops.resizing import resize as resize
    from dashi.graph.ops.rows import absolute_sum as absolute_sum
    from dashi.graph.ops.rows import layer_norm as layer_norm
    from dashi.graph.ops.rows import log_softmax as log_softmax
    from dashi.graph.ops.rows import logsumexp as logsumexp
    from dashi.graph.ops.rows import max_ as max_
    from dashi.graph.ops.rows import mean as mean
    from dashi.graph.ops.rows import min_ as min_
    from dashi.graph.ops.rows import norm as norm
    from dashi.graph.ops.rows import prod as prod
    from dashi.graph.ops.rows import rms_norm as rms_norm
    from dashi.graph.ops.rows import softmax as softmax
    from dashi.graph.ops.rows import square_sum as square_sum
    from dashi.graph.ops.rows import sum_ as sum_
    from dashi.graph.ops.rows import unit as unit
    from dashi.graph.ops.scans import cumprod as cumprod
    from dashi.graph.ops.scans import cumsum as cumsum
    from dashi.graph.ops.scattering import scatter_add as scatter_add
    from dashi.graph.ops.scattering import scatter_elements as scatter_elements
    from dashi.graph.ops.scattering import scatter_nd as scatter_nd
    from dashi.graph.ops.shaping import lower_triangle as lower_triangle
    from dashi.graph.ops.shaping import one_hot as one_hot
    from dashi.graph.ops.shaping import pad as pad
    from dashi.graph.ops.shaping import tile as tile
    from dashi.graph.ops.shaping import upper_triangle as upper_triangle
    from dashi.graph.ops.spectral import fft as fft
    from dashi.graph.ops.spectral import irfft as irfft
    from dashi.graph.ops.spectral import rfft as rfft
    from dashi.graph.ops.state_scans import gated_delta as gated_delta
    from dashi.graph.ops.state_scans import selective_scan as selective_scan
    from dashi.graph.pass_order import PASSES as PASSES
    from dashi.graph.pass_order import UNFUSED as UNFUSED
    from dashi.graph.pass_order import run_passes as run_passes
    from dashi.graph.passes.assign_layouts import AssignLayouts as AssignLayouts
    from dashi.graph.passes.fuse import Fuse as Fuse
    from dashi.graph.passes.legalize import Legalize as Legalize
    from dashi.graph.passes.plan_memory import PlanMemory as PlanMemory
    from dashi.graph.passes.record import Record as Record
    from dashi.graph.passes.rewrite import Rewrite as Rewrite
    from dashi.graph.passes.schedule import Schedule as Schedule
    from dashi.graph.pipeline import CompiledPipeline as CompiledPipeline
    from dashi.graph.registry import all_ops as all_ops
    from dashi.graph.report import PipelineReport as PipelineReport
    from dashi.graph.running import GraphRun as GraphRun
    from dashi.graph.running import random_values as random_values
    from dashi.graph.running import run_graph as run_graph
    from dashi.graph.specialization import SpecializedPipeline as SpecializedPipeline
    from dashi.graph.text import parse_graph as parse_graph
    from dashi.graph.tuning import TunedCall as TunedCall
    from dashi.graph.tuning import tune as tune
    from dashi.graph.verification import verify as verify

_ELEMENTWISE = (
    "absolute atan atan2 bit_and bit_or bit_xor cast ceil clip cos divide equal erf exp floor fma greater "
    "greater_equal is_infinite is_nan less less_equal log logical_and logical_not logical_or logical_xor maximum "
    "minimum mod not_equal power reciprocal relu round_ rsqrt shift_left shift_right sigmoid sign sin softplus sqrt "
    "square tanh trunc truncated_mod where"
)
_ROWS = "absolute_sum layer_norm log_softmax logsumexp max_ mean min_ norm prod rms_norm softmax square_sum sum_ unit"
_MODULES = {
    "builder": "Builder Tensor",
    "calls": "CallConfig",
    "compiler": "compile explain host_steps program_id",
    "debug": "Debug",
    "evaluation": "evaluate",
    "handles": "Resident",
    "ir": "Graph Node TensorType print_graph",
    "op": "Launch Op",
    "ops.activations": "elu gelu gelu_tanh hard_sigmoid hard_swish leaky_relu mish selu silu tan",
    "ops.attention": "attention",
    "ops.attention_block": "attention_block",
    "ops.contractions": "dot_general grouped_matmul",
    "ops.convolution": "conv conv_transpose im2col",
    "ops.control": "repeat scan select",
    "ops.elementwise": _ELEMENTWISE,
    "ops.indexing": "gather gather_elements gather_nd",
    "ops.joining": "concat",
    "ops.movement": "expand narrow reshape reverse slice_ split stop_gradient transpose",
    "ops.norms": "batch_norm group_norm instance_norm layer_norm_2d",
    "ops.order": "argmax argmin argsort sort top_k",
    "ops.pools": "average_pool global_average_pool global_max_pool max_pool",
    "ops.positions": "rope rope_tables write_rows",
    "ops.packed": "dequantize",
    "ops.products": "matmul",
    "ops.quantization": "dequantize_linear quantize_linear",
    "ops.resizing": "resize",
    "ops.rows": _ROWS,
    "ops.scans": "cumprod cumsum",
    "ops.scattering": "scatter_add scatter_elements scatter_nd",
    "ops.shaping": "lower_triangle one_hot pad tile upper_triangle",
    "ops.spectral": "fft irfft rfft",
    "ops.random": "random_normal random_uniform rng_input rng_words sample",
    "ops.recurrent": "CellOptions gru lstm rnn",
    "ops.state_scans": "gated_delta selective_scan",
    "pass_order": "PASSES UNFUSED run_passes",
    "passes.assign_layouts": "AssignLayouts",
    "passes.fuse": "Fuse",
    "passes.legalize": "Legalize",
    "passes.plan_memory": "PlanMemory",
    "passes.record": "Record",
    "passes.rewrite": "Rewrite",
    "passes.schedule": "Schedule",
    "pipeline": "CompiledPipeline",
    "registry": "all_ops",
    "report": "PipelineReport",
    "running": "GraphRun random_values run_graph",
    "specialization": "SpecializedPipeline",
    "text": "parse_graph",
    "tuning": "TunedCall tune",
    "verification": "verify",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
