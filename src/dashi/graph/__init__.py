"""Graphs of tensor ops, compiled once and run again and again, with the same bits on every device.

    b = dashi.graph.Builder("tiny")
    x = b.input("x", (2, 3))
    g = b.graph(y=dashi.graph.tanh(x) * 2.0)
    with dashi.open() as d, dashi.graph.compile(g, d) as pipeline:
        y = pipeline.dispatch({"x": values})["y"]

`evaluate(graph, inputs)` is the uncompiled run in NumPy, whose bits every pipeline gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.graph.builder import Builder as Builder
    from dashi.graph.builder import Tensor as Tensor
    from dashi.graph.compiler import compile as compile
    from dashi.graph.compiler import explain as explain
    from dashi.graph.compiler import host_steps as host_steps
    from dashi.graph.compiler import program_id as program_id
    from dashi.graph.evaluation import evaluate as evaluate
    from dashi.graph.ir import Graph as Graph
    from dashi.graph.ir import Node as Node
    from dashi.graph.ir import TensorType as TensorType
    from dashi.graph.ir import print_graph as print_graph
    from dashi.graph.op import Launch as Launch
    from dashi.graph.op import Op as Op
    from dashi.graph.ops.attention import attention as attention
    from dashi.graph.ops.elementwise import absolute as absolute
    from dashi.graph.ops.elementwise import atan as atan
    from dashi.graph.ops.elementwise import atan2 as atan2
    from dashi.graph.ops.elementwise import cast as cast
    from dashi.graph.ops.elementwise import ceil as ceil
    from dashi.graph.ops.elementwise import clip as clip
    from dashi.graph.ops.elementwise import cos as cos
    from dashi.graph.ops.elementwise import equal as equal
    from dashi.graph.ops.elementwise import erf as erf
    from dashi.graph.ops.elementwise import exp as exp
    from dashi.graph.ops.elementwise import floor as floor
    from dashi.graph.ops.elementwise import gelu as gelu
    from dashi.graph.ops.elementwise import greater as greater
    from dashi.graph.ops.elementwise import greater_equal as greater_equal
    from dashi.graph.ops.elementwise import less as less
    from dashi.graph.ops.elementwise import less_equal as less_equal
    from dashi.graph.ops.elementwise import log as log
    from dashi.graph.ops.elementwise import maximum as maximum
    from dashi.graph.ops.elementwise import minimum as minimum
    from dashi.graph.ops.elementwise import not_equal as not_equal
    from dashi.graph.ops.elementwise import power as power
    from dashi.graph.ops.elementwise import reciprocal as reciprocal
    from dashi.graph.ops.elementwise import relu as relu
    from dashi.graph.ops.elementwise import round_ as round_
    from dashi.graph.ops.elementwise import rsqrt as rsqrt
    from dashi.graph.ops.elementwise import sigmoid as sigmoid
    from dashi.graph.ops.elementwise import sign as sign
    from dashi.graph.ops.elementwise import sin as sin
    from dashi.graph.ops.elementwise import softplus as softplus
    from dashi.graph.ops.elementwise import sqrt as sqrt
    from dashi.graph.ops.elementwise import square as square
    from dashi.graph.ops.elementwise import tanh as tanh
    from dashi.graph.ops.elementwise import trunc as trunc
    from dashi.graph.ops.elementwise import where as where
    from dashi.graph.ops.indexing import concat as concat
    from dashi.graph.ops.indexing import gather as gather
    from dashi.graph.ops.movement import expand as expand
    from dashi.graph.ops.movement import reshape as reshape
    from dashi.graph.ops.movement import slice_ as slice_
    from dashi.graph.ops.movement import transpose as transpose
    from dashi.graph.ops.products import matmul as matmul
    from dashi.graph.ops.rows import layer_norm as layer_norm
    from dashi.graph.ops.rows import log_softmax as log_softmax
    from dashi.graph.ops.rows import max_ as max_
    from dashi.graph.ops.rows import mean as mean
    from dashi.graph.ops.rows import min_ as min_
    from dashi.graph.ops.rows import norm as norm
    from dashi.graph.ops.rows import prod as prod
    from dashi.graph.ops.rows import rms_norm as rms_norm
    from dashi.graph.ops.rows import softmax as softmax
    from dashi.graph.ops.rows import sum_ as sum_
    from dashi.graph.ops.rows import unit as unit
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
    from dashi.graph.resident import Resident as Resident
    from dashi.graph.text import parse_graph as parse_graph
    from dashi.graph.verification import verify as verify

_ELEMENTWISE = (
    "absolute atan atan2 cast ceil clip cos equal erf exp floor gelu greater greater_equal less less_equal log maximum "
    "minimum not_equal power reciprocal relu round_ rsqrt sigmoid sign sin softplus sqrt square tanh trunc where"
)
_MODULES = {
    "builder": "Builder Tensor",
    "compiler": "compile explain host_steps program_id",
    "evaluation": "evaluate",
    "ir": "Graph Node TensorType print_graph",
    "op": "Launch Op",
    "ops.attention": "attention",
    "ops.elementwise": _ELEMENTWISE,
    "ops.indexing": "concat gather",
    "ops.movement": "expand reshape slice_ transpose",
    "ops.products": "matmul",
    "ops.rows": "layer_norm log_softmax max_ mean min_ norm prod rms_norm softmax sum_ unit",
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
    "resident": "Resident",
    "text": "parse_graph",
    "verification": "verify",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
