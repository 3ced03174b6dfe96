"""Modules as they are really compiled: with the specialisation constants that the plans of a kernel's cases ask for."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from dashi.errors import DashiError
from dashi.kernels import _build as build
from dashi.kernels import _glsl as glsl
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Kernel, Limits, Plan, features, plan_features
from dashi.kernels.spirv._float_controls import declare_float_controls
from dashi.runtime.info import DeviceInfo
from dashi.types import DTYPES

_TRIPS: Final = 1 << 22
_RESIDENT: Final = (0, 128)
"""Loop trips, and workgroups at once (not known; few), that GPUs are assumed to have: only hardware could tell."""


@dataclass(frozen=True)
class ModuleUse:
    """A shader variant with the values of its specialisation constants."""

    kernel: Kernel
    shader: str
    variant: str
    spec: tuple[int, ...]

    def request(self, info: DeviceInfo, loader: build.Loader) -> dict[str, Any]:
        """What the compiler is asked for, as JSON: the words that a device would be given."""
        shader = self.kernel.shaders[self.shader]
        words = loader.load(self.kernel, self.shader, self.variant).words
        if self.kernel.portable:
            words = declare_float_controls(words, info.float_controls)
        return {
            "words": base64.b64encode(words).decode(),
            "buffers": len(shader.buffers),
            "push_bytes": glsl.push_layout(shader.push, DTYPES[self.variant])[1],
            "spec": self.spec,
            "full_subgroups": "subgroup_quad" in features(self.kernel, shader, self.variant),
        }


def module_uses(kernel: Kernel, info: DeviceInfo) -> tuple[list[ModuleUse], list[str]]:
    """Every module that the cases of a kernel, with all its tunings, run on a device; and what the device lacks for
    variants, or for some of their plans ("f64: fp64")."""
    offered = info.features | {"rendezvous"}
    limits = replace(info.limits, features=offered, subgroup=info.subgroup_size, loop_trips=_TRIPS)
    uses: dict[tuple[str, str, tuple[int, ...]], ModuleUse] = {}
    lacking: dict[str, None] = {}
    for variant in kernel.dtypes:
        plans, refusals = _plans(kernel, variant, limits)
        if not plans:
            lacking[f"{variant}: other limits: {refusals[0]}"] = None
        for plan in plans:
            missing = plan_features(kernel, plan, variant) - offered
            if missing:
                lacking[f"{variant}: {' '.join(sorted(missing))}"] = None
                continue
            for dispatch in plan.dispatches:
                spec = kernel.shaders[dispatch.shader].spec
                values = tuple(dispatch.spec.get(constant.name, constant.default) for constant in spec)
                uses[dispatch.shader, variant, values] = ModuleUse(kernel, dispatch.shader, variant, values)
    return list(uses.values()), list(lacking)


def _plans(kernel: Kernel, variant: str, known: Limits) -> tuple[list[Plan], list[str]]:
    """Plans of all cases and tunings; and why others do not fit, which are not run on such a device."""
    plans: list[Plan] = []
    refusals: list[str] = []
    every_limits = [replace(known, resident=groups) for groups in _RESIDENT]
    for case, limits in product((*kernel.cases, *kernel.bench), every_limits):
        for numbers in kernel.tunings.values() or (None,):
            try:
                shapes = [case.shapes[operand.name] for operand in kernel.inputs]
                plans.append(kernel.plan(resolve_call(kernel, variant, shapes, case.scalars, limits, numbers)))
            except DashiError as error:
                refusals.append(error.what)
    return plans, refusals
