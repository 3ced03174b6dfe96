"""Operators and models are found by entry points: this project's, and those of any other distribution."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi import _entry_points as entry_points
from dashi._entry_points import declarations, source_declarations
from dashi.cli.main import app
from dashi.core.certificates._certificate import read_certificate, write_certificate
from dashi.core.certificates.inputs import load_operator, save_operator
from dashi.core.operators._catalogue import KINDS, operator_class
from dashi.core.operators.affine import Linear
from dashi.errors import DISTRIBUTION, EntryPointError, UnknownNameError
from dashi.flow.evaluation._fits import fit_model
from dashi.flow.proxy import MODELS, load_model, save_model

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
Declare = Callable[..., None]

DOUBLING = """
from dashi.core.operators.affine import Linear

class Doubling(Linear):
    kind = "doubling"

    @classmethod
    def restore(cls, arrays, parameters):
        return cls(arrays["A"])
"""
STILL = """
from dashi.flow.proxy._persistence import Persistence

class Still(Persistence):
    name = "still"
"""


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Puts a distribution on sys.path, as an installer would, with a module of its own."""

    def put(name: str, entries: str, module: str = "", source: str = "") -> None:
        site = tmp_path / f"site-{name}"
        folder = site / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(entries)
        if module:
            (site / f"{module}.py").write_text(source)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(site))

    return put


def test_every_operator_and_model_of_this_project_is_declared_and_loads() -> None:
    assert {kind: KINDS[kind].kind for kind in KINDS} == {kind: kind for kind in KINDS}
    assert {name: MODELS[name].name for name in MODELS} == {name: name for name in MODELS}
    assert len(KINDS) >= 9
    assert len(MODELS) >= 9


def test_an_operator_of_another_distribution_comes_back_from_its_file(declare: Declare, tmp_path: Path) -> None:
    declare("twice", "[dashi.operators]\ndoubling = twice_operator:Doubling\n", "twice_operator", DOUBLING)
    doubling = operator_class("doubling")
    save_operator(tmp_path / "op.npz", doubling.restore({"A": 2 * np.eye(2)}, {}))
    assert type(load_operator(tmp_path / "op.npz")) is doubling


def test_a_model_of_another_distribution_is_fitted_and_kept(declare: Declare, tmp_path: Path) -> None:
    from dashi.flow import Flow
    from dashi.flow.proxy import Schema
    from dashi.flow.windows import Windows

    declare("quiet", "[dashi.models]\nstill = quiet_model:Still\n", "quiet_model", STILL)
    windows = Windows(Flow(16), 1, np.ones((1, 3, 16, 16)), seeds=(1,), starts=(0,))
    model = fit_model("still", Schema(16, k_cut=3.0), windows, None, device="cpu")
    save_model(tmp_path / "model.npz", model)
    assert type(load_model(tmp_path / "model.npz")) is MODELS["still"]


@pytest.mark.parametrize(
    ("target", "source", "reason"),
    [
        ("faulty:Thing", "raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("faulty:Thing", "raise SystemExit(7)", "SystemExit: 7"),
        ("faulty:Thing", "Other = 1", "AttributeError"),
        ("not_there_at_all:Thing", "", "ModuleNotFoundError"),
        ("faulty", "", "not of the form module:Class"),
        ("faulty:Thing", "Thing = 3", "no class of Operator"),
        ("faulty:Thing", "class Thing: kind = 'thing'", "no class of Operator"),
        ("faulty:Linear", "from dashi.core.operators.affine import Linear", "calls itself 'linear'"),
    ],
)
def test_a_broken_entry_point_fails_by_its_name_alone(declare: Declare, target: str, source: str, reason: str) -> None:
    declare("crooked", f"[dashi.operators]\nthing = {target}\n", "faulty", source)
    assert operator_class("linear") is Linear
    assert "thing" in KINDS
    with pytest.raises(EntryPointError, match=re.escape(reason)) as error:
        operator_class("thing")
    assert "crooked 1.0" in str(error.value)
    assert error.value.fix == "mend or uninstall crooked 1.0."


def test_a_distribution_that_cannot_be_read_is_named_where_a_name_is_missing(declare: Declare) -> None:
    declare("garbled", "[dashi.operators]\nthis is no declaration\n")
    assert operator_class("linear") is Linear
    with pytest.raises(UnknownNameError, match=r"could not be read: garbled 1\.0"):
        operator_class("doubling")


def test_a_name_that_two_distributions_declare_is_refused_with_both(declare: Declare) -> None:
    for name in ("first", "second"):
        declare(name, f"[dashi.operators]\ndoubling = {name}_operator:Doubling\n", f"{name}_operator", DOUBLING)
    with pytest.raises(EntryPointError, match=r"'doubling' is declared by first 1\.0 and second 1\.0"):
        operator_class("doubling")


def test_a_distribution_cannot_take_the_place_of_an_own_operator(declare: Declare) -> None:
    declare("greedy", "[dashi.operators]\nlinear = greedy_operator:Linear\n", "greedy_operator", "raise SystemExit")
    with pytest.raises(EntryPointError, match=rf"'linear' is declared by {DISTRIBUTION} and greedy 1\.0") as error:
        operator_class("linear")
    assert error.value.fix.startswith("uninstall greedy 1.0")


def test_one_distribution_twice_on_the_path_is_one(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    declare("twice", "[dashi.operators]\ndoubling = twice_operator:Doubling\n", "twice_operator", DOUBLING)
    monkeypatch.setattr(sys, "path", [sys.path[0], *sys.path])
    assert operator_class("doubling").kind == "doubling"


def test_a_certificate_of_a_kind_that_is_not_installed_ends_with_exit_3_and_the_reason(tmp_path: Path) -> None:
    run = CliRunner().invoke(
        app, ["demo", "--rollout", "--steps", "10", "--device", "cpu", "--out", str(tmp_path / "r")]
    )
    assert run.exit_code == 0, run.output
    file = tmp_path / "r" / "certificate.json"
    claimed = read_certificate(file)
    foreign = claimed.model_copy(update={"operator": claimed.operator.model_copy(update={"kind": "doubling"})})
    write_certificate(file, foreign)
    verified = CliRunner().invoke(app, ["verify", str(file), "--device", "cpu", "--json"])
    assert verified.exit_code == 3
    told = json.loads(verified.stdout)["error"]
    assert "there is no operator 'doubling'" in told["what"]
    assert "install the package that declares it" in told["fix"]


def test_a_source_tree_that_is_not_installed_reads_its_own_pyproject(tmp_path: Path) -> None:
    """Without site-packages' metadata of dashi: an empty interpreter whose path is src/ and the libraries alone."""
    program = (
        "import sys\n"
        "from importlib import metadata\n"
        f"sys.path = [p for p in sys.path if not any(metadata.distributions(name='{DISTRIBUTION}', path=[p]))]\n"
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
        "from dashi._entry_points import MODELS, OPERATORS, declarations\n"
        "from dashi.errors import DISTRIBUTION\n"
        "assert not list(metadata.distributions(name=DISTRIBUTION))\n"
        "print(*declarations(OPERATORS).by_name, *declarations(MODELS).by_name)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [*KINDS, *MODELS]


def test_another_projects_pyproject_is_not_read(tmp_path: Path) -> None:
    assert source_declarations(tmp_path, "dashi.models") is None
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "other"\n[project.entry-points."dashi.models"]\na="b:c"'
    )
    assert source_declarations(tmp_path, "dashi.models") is None


def test_installed_metadata_is_read_where_there_is_no_source_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declare: Declare
) -> None:
    declare(DISTRIBUTION.replace("-", "_"), "[dashi.operators]\nlinear = dashi.core.operators.affine:Linear\n")
    monkeypatch.setattr(entry_points, "__file__", str(tmp_path / "site-packages" / "dashi" / "_entry_points.py"))
    assert list(declarations("dashi.operators").by_name) == ["linear"]


def test_nothing_is_imported_for_the_names_alone() -> None:
    program = "import sys; from dashi._entry_points import *; declarations(OPERATORS); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def _calls_of_import(tree: ast.AST) -> list[ast.Call]:
    names = {"import_module", "__import__"}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [c for c in calls if getattr(c.func, "attr", getattr(c.func, "id", "")) in names]


def test_no_module_imports_a_part_of_dashi_by_a_string() -> None:
    """But for the `__getattr__` of packages, which import from below themselves; and the loader of entry points."""
    strings: set[str] = set()
    for path in sorted((SOURCES / "dashi").rglob("*.py")):
        text = path.read_text("utf-8")
        if "import_module" not in text and "__import__" not in text:
            continue
        tree = ast.parse(text)
        lazy = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "__getattr__"]
        of_a_package = lazy if path.name == "__init__.py" else []
        allowed = {id(call) for function in of_a_package for call in _calls_of_import(function)}
        for call in _calls_of_import(tree):
            other = isinstance(call.args[0], ast.Constant) and not str(call.args[0].value).startswith(("dashi", "."))
            if id(call) not in allowed and not other:
                strings.add(f"{path.relative_to(SOURCES / 'dashi').as_posix()}: {ast.unparse(call.args[0])}")
    assert strings == {
        "_lazy.py: places[name]",  # the names of a package, from its own modules
        "_lazy.py: f'{package}.{name}'",  # a module or package below it
        "_entry_points.py: module",
        "bench/peers/gpu_library.py: name",  # torch or jax
        "report/_style.py: name",  # matplotlib
    }
