"""Proxies: compact states of a flow, and the models that advance them."""

from typing import TYPE_CHECKING

from dashi.flow.proxy.catalogue import MODELS, load_model, model_class, save_model
from dashi.flow.proxy.encode import choose_anchors, encode
from dashi.flow.proxy.files import load_z, save_z
from dashi.flow.proxy.lowpass import decode
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.model_operator import ModelOperator
from dashi.flow.proxy.schema import Schema

__all__ = [
    "MODELS",
    "Model",
    "ModelOperator",
    "Schema",
    "choose_anchors",
    "decode",
    "encode",
    "load_model",
    "load_z",
    "model_class",
    "save_model",
    "save_z",
]

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake

    def __getattr__(name: str) -> object:
        from dashi._lazy import below

        return below(__name__, name)
