"""Decode: proxies back to fields on a device, looked at as the caller asks, and nothing more."""

from dashi.flow.decode.decoder import Decoded, Decoder
from dashi.flow.decode.observer import Decodes
from dashi.flow.decode.settings import OBSERVERS, Settings
from dashi.flow.decode.statistics import Statistics, fit_statistics, load_statistics, save_statistics

__all__ = [
    "OBSERVERS",
    "Decoded",
    "Decoder",
    "Decodes",
    "Settings",
    "Statistics",
    "fit_statistics",
    "load_statistics",
    "save_statistics",
]
