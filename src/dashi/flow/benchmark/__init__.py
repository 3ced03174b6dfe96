"""Benchmarks of long forecasts that others have published numbers for, made again from seeds to the last bit."""

from dashi.flow.benchmark.scoring import Score, correlation_times
from dashi.flow.benchmark.setting import FULL, PUBLISHED, QUICK, BenchmarkSetting, Published, setting_named
from dashi.flow.benchmark.truth import Truth, load_truth, make_truth, save_truth

__all__ = [
    "FULL",
    "PUBLISHED",
    "QUICK",
    "BenchmarkSetting",
    "Published",
    "Score",
    "Truth",
    "correlation_times",
    "load_truth",
    "make_truth",
    "save_truth",
    "setting_named",
]
