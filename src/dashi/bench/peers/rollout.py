"""A dense rollout by torch (a CUDA graph of cuBLAS calls) and by JAX (a compiled loop), for comparison only."""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

from dashi.bench.peers.cuda_timing import replays_us
from dashi.bench.peers.gpu_library import load_library
from dashi.types import HostArray

STEPS: Final = 1000
ROUNDS: Final = 5
NAMES: Final = ("torch", "jax")


class TorchRollout:
    """`torch.mm` to and fro, captured in a CUDA graph."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        self.version = f"torch {torch.__version__}, CUDA graph"

    def us_per_step(self, matrix: HostArray, states: HostArray) -> float:
        """The median over rounds."""
        torch = self._torch
        a, z = torch.from_numpy(matrix).cuda(), torch.from_numpy(states).cuda()
        other = torch.empty_like(z)

        def loop() -> None:
            for _ in range(STEPS // 2):
                torch.mm(z, a, out=other)
                torch.mm(other, a, out=z)

        return statistics.median(us / STEPS for us in replays_us(torch, loop, ROUNDS))


class JaxRollout:
    """`lax.fori_loop` of z @ A, compiled."""

    name = "jax"

    def __init__(self, jax: Any) -> None:
        self._jax = jax
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
        self.version = f"jax {jax.__version__}, fori_loop on {jax.devices()[0].platform}"

    def us_per_step(self, matrix: HostArray, states: HostArray) -> float:
        """The median over rounds."""
        jax = self._jax
        put = jax.device_put

        def loop(z: Any, a: Any) -> Any:
            def step(_: Any, v: Any) -> Any:
                return v @ a

            return jax.lax.fori_loop(0, STEPS, step, z)

        run = jax.jit(loop)
        z, a = put(states[0] if len(states) == 1 else states), put(matrix)
        run(z, a).block_until_ready()
        taken: list[float] = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            run(z, a).block_until_ready()
            taken.append((time.perf_counter() - began) * 1e6 / STEPS)
        return statistics.median(taken)


Peer = TorchRollout | JaxRollout


def load(name: str) -> Peer:
    """The peer of that name, on a GPU: on a processor its numbers would compare nothing."""
    library = load_library(name, NAMES)
    return TorchRollout(library) if name == "torch" else JaxRollout(library)
