"""The counts of a chain, checked exhaustively: Spin runs every order of events of small chains whose stages die at any
point and lose their memory. The transitions of the model are made from the code's own text."""

from __future__ import annotations

import ast
import inspect
import shutil
import subprocess
from pathlib import Path

import pytest

from dashi.stream._chain import ChainState

MODEL = Path(__file__).with_name("chain.pml")
NAMES = {"volatile": "loses"}  # a word of C, which the checker is compiled from
GUARDS = (
    "may_push may_pop has_input has_slot may_begin may_finish may_deliver may_release may_widen may_survive"
).split()  # fmt: skip
CHANGES = "push pop begin finish deliver release kill widen".split()
SMALL = {"S": 2, "W": 2, "N": 3, "KILLS": 1}
OPERATORS = {ast.Lt: "<", ast.LtE: "<=", ast.Add: "+", ast.And: "&&"}


class Promela(ast.NodeVisitor):
    """Methods of counts, comparisons and assignments, in Promela. Anything else is an error: the model would lie."""

    def generic_visit(self, node: ast.AST) -> str:
        raise AssertionError(f"{ast.unparse(node)} cannot be said in the model")

    def visit_Constant(self, node: ast.Constant) -> str:
        return str(node.value)

    def visit_Name(self, node: ast.Name) -> str:
        return node.id

    def visit_Attribute(self, node: ast.Attribute) -> str:
        return "LAST" if node.attr == "last" else NAMES.get(node.attr, node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> str:
        return f"{self.visit(node.value)}[{self.visit(node.slice)}]"

    def visit_BinOp(self, node: ast.BinOp) -> str:
        return f"({self.visit(node.left)} {OPERATORS[type(node.op)]} {self.visit(node.right)})"

    def visit_Compare(self, node: ast.Compare) -> str:
        (right,) = node.comparators
        return f"({self.visit(node.left)} {OPERATORS[type(node.ops[0])]} {self.visit(right)})"

    def visit_BoolOp(self, node: ast.BoolOp) -> str:
        return f"({f' {OPERATORS[type(node.op)]} '.join(map(self.visit, node.values))})"

    def visit_IfExp(self, node: ast.IfExp) -> str:
        return f"({self.visit(node.test)} -> {self.visit(node.body)} : {self.visit(node.orelse)})"

    def visit_Call(self, node: ast.Call) -> str:
        return f"{self.visit(node.func)}({', '.join(map(self.visit, node.args))})"

    def visit_Return(self, node: ast.Return) -> str:
        assert node.value is not None
        return self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> str:
        (target,) = node.targets
        return f"{self.visit(target)} = {self.visit(node.value)}"

    def visit_AugAssign(self, node: ast.AugAssign) -> str:
        target = self.visit(node.target)
        return f"{target} = {target} {OPERATORS[type(node.op)]} {self.visit(node.value)}"

    def visit_If(self, node: ast.If) -> str:
        assert not node.orelse
        return f"if :: {self.visit(node.test)} -> {'; '.join(map(self.visit, node.body))} :: else -> skip fi"


def transitions() -> str:
    """Guards and changes of `ChainState` as macros."""
    (definition,) = ast.parse(inspect.getsource(ChainState)).body
    assert isinstance(definition, ast.ClassDef)
    methods = {node.name: node for node in definition.body if isinstance(node, ast.FunctionDef)}
    lines: list[str] = []
    for name in [*GUARDS, *CHANGES]:
        method = methods[name]
        arguments = ", ".join(one.arg for one in method.args.args[1:])
        body = [
            node for node in method.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        ]
        lines.append(f"#define {name}({arguments}) {'; '.join(map(Promela().visit, body))}")
    return "\n".join(lines) + "\n"


def checked(folder: Path, sizes: dict[str, int], changed: str = "", to: str = "") -> str:
    """What the checker says of the model with these sizes; of one with a fault, where a text is changed to another."""
    if shutil.which("spin") is None or shutil.which("cc") is None:
        pytest.skip("spin or a C compiler is not installed: as root, apt-get install spin gcc libc6-dev")
    text = transitions()
    assert changed in text
    (folder / "transitions.pml").write_text(text.replace(changed, to) if changed else text)
    shutil.copy(MODEL, folder)
    options = [f"-D{name}={value}" for name, value in sizes.items()]
    run(["spin", *options, "-a", MODEL.name], folder)
    run(["cc", "-O2", "-w", "-DNOFAIR", "-DVECTORSZ=4096", "-DMEMLIM=2000", "-o", "pan", "pan.c"], folder)
    return run(["./pan", "-a", "-m200000", "-n"], folder)


def run(command: list[str], folder: Path) -> str:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_every_transition_of_the_code_is_one_of_the_model() -> None:
    changes = {
        name
        for name, method in vars(ChainState).items()
        if inspect.isfunction(method) and "+=" in inspect.getsource(method)
    }
    assert changes <= {*CHANGES} | {"__init__"}
    assert "#define may_begin(i) (has_input(i) && has_slot(i) && " in transitions()
    assert all(f"{name}(" in MODEL.read_text() for name in [*GUARDS[:2], *GUARDS[4:], *CHANGES])


@pytest.mark.long
def test_two_neighbours_that_die_at_once_may_lose_items_and_that_is_known(tmp_path: Path) -> None:
    # Without the guard the model finds it: what a dead stage had received is only in the memory of the one before.
    sizes = {"S": 2, "W": 1, "N": 3, "KILLS": 2}
    guard = "(released[i] <= (loses[i] -> delivered[(i + 1)] : written[(i + 1)]))"
    assert "errors: 0" not in checked(tmp_path, sizes, guard, "true")
    assert "errors: 0" in checked(tmp_path, sizes)


def test_nothing_is_lost_where_a_stage_dies(tmp_path: Path) -> None:
    told = checked(tmp_path, SMALL)
    assert "errors: 0" in told
    assert "max search depth too small" not in told


@pytest.mark.long
@pytest.mark.parametrize(
    "sizes",
    [
        {"S": 1, "W": 1, "N": 4, "KILLS": 3},
        {"S": 2, "W": 2, "N": 4, "KILLS": 2},
        {"S": 2, "W": 2, "N": 4, "KILLS": 2, "LOSES": 0},
        {"S": 2, "W": 2, "N": 3, "KILLS": 1, "AHEAD": 2},
        {"S": 2, "W": 1, "CAP": 2, "N": 3, "KILLS": 1},
        {"S": 3, "W": 1, "N": 3, "KILLS": 2},
        {"S": 3, "W": 2, "N": 4, "KILLS": 1},
    ],
    ids=lambda sizes: "-".join(f"{name}{value}" for name, value in sizes.items()),
)
def test_nothing_is_lost_doubled_or_reordered_and_nothing_hangs(tmp_path: Path, sizes: dict[str, int]) -> None:
    told = checked(tmp_path, sizes)
    assert "errors: 0" in told
    assert "max search depth too small" not in told


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "to"),
    [
        ("(released[0] + window[0])", "(released[0] + window[0] + 1)"),  # a slot is reused too early
        ("(loses[i] -> delivered[(i + 1)] : written[(i + 1)])", "(written[(i + 1)])"),  # acknowledged before it is safe
        ("delivered[i] = released[i]", "skip"),  # what was received and lost is not sent again
        ("reserved[(i + 1)] = written[(i + 1)]", "skip"),  # what was begun is not begun again
    ],
)
def test_the_model_finds_faults(tmp_path: Path, changed: str, to: str) -> None:
    assert "errors: 0" not in checked(tmp_path, SMALL, changed, to)
