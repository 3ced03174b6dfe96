"""No module needs itself: imports at the top of files and inside of functions form no circle.

An import inside of a function hides a circle from Python, not from whoever changes one of its modules. What only types
are named for (`if TYPE_CHECKING:`) is left out: nothing runs there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def module_name(path: Path) -> str:
    """The dotted name of a file below the sources; of an __init__.py that of its package."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes, functions' bodies too, but for what stands under `if TYPE_CHECKING:`."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack += node.orelse
        else:
            stack += ast.iter_child_nodes(node)


def imported_modules(tree: ast.AST, name: str, is_package: bool, modules: frozenset[str]) -> frozenset[str]:
    """The modules, of those given, that a module imports anywhere; `from package import module` is that module."""
    targets: set[str] = set()
    for node in nodes_that_run(tree):
        if isinstance(node, ast.Import):
            targets.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = name.split(".")[: len(name.split(".")) + is_package - node.level] if node.level else []
            origin = ".".join([*parents, *([node.module] if node.module else [])])
            members = (f"{origin}.{alias.name}" for alias in node.names)
            targets.update(member if member in modules else origin for member in members)
    return modules & (targets - {name})


def import_graph() -> dict[str, frozenset[str]]:
    """For every module of dashi those that it imports."""
    paths = {module_name(path): path for path in sorted((SOURCE / "dashi").rglob("*.py"))}
    modules = frozenset(paths)
    return {
        name: imported_modules(ast.parse(path.read_text()), name, path.name == "__init__.py", modules)
        for name, path in paths.items()
    }


def first_cycle(graph: Mapping[str, frozenset[str]]) -> list[str]:
    """Modules, each of which imports the next, that end where they began; none where there is no circle, which is
    the same as that no strongly connected component has more than one module."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def test_no_module_imports_itself_through_others_not_even_inside_of_a_function() -> None:
    graph = import_graph()
    assert sum(map(len, graph.values())) > 1000
    cycle = first_cycle(graph)
    assert not cycle, f"move what they share to a module of its own: {' -> '.join(cycle)}"


def test_an_import_inside_of_a_function_closes_a_circle_and_one_for_types_does_not() -> None:
    modules = frozenset({"dashi", "dashi.a", "dashi.a.b", "dashi.c"})

    def imports(text: str, name: str, is_package: bool = False) -> frozenset[str]:
        return imported_modules(ast.parse(text), name, is_package, modules)

    inside = imports("def f():\n    from dashi.a import b\n", "dashi.c")
    assert inside == {"dashi.a.b"}
    assert imports("if TYPE_CHECKING:\n    import dashi.c\n", "dashi.a.b") == set()
    assert imports("from . import b\nfrom .b import g\n", "dashi.a", is_package=True) == {"dashi.a.b"}
    assert imports("from .. import c\nfrom ..c import f\nfrom . import f\n", "dashi.a.b") == {"dashi.c", "dashi.a"}
    assert first_cycle({"dashi.c": inside, "dashi.a.b": frozenset()}) == []
    cycle = first_cycle({"dashi.c": inside, "dashi.a.b": frozenset({"dashi.c"})})
    assert cycle[0] == cycle[-1]
    assert set(cycle) == {"dashi.c", "dashi.a.b"}
