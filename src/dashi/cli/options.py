"""Options that mean the same in every command, declared once; and what the shell offers after <Tab> for options and
arguments: names that are known without opening a device or importing NumPy."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from dashi.cli.help import DEVICE, OUTPUT

_JSON: Final = "dashi.json"
_LINE: Final[ContextVar[str]] = ContextVar("dashi_line", default="")
_MANY: Final = 10**18
"""No number of anything is as large."""
_DEVICES: Final = {
    "auto": "the best there is: discrete GPU, integrated, software Vulkan, NumPy",
    "cpu": "NumPy on the processor",
    "null": "records everything, computes nothing",
    "vulkan:0": "the first Vulkan device",
    "vulkan:1": "the second Vulkan device",
}
FIELDS: Final = (
    "vorticity", "streamfunction", "velocity_x", "velocity_y", "strain_normal", "strain_shear", "pressure",
)  # fmt: skip
PEERS: Final = ("torch", "jax")
INITIAL_CONDITIONS: Final = (
    "random", "taylor-green", "shear-layer", "patches", "lamb-dipole", "ellipse", "lamb-oseen",
)  # fmt: skip
_DEVICE_HELP: Final = "Where to compute: auto, cpu, null, vulkan:0 or vulkan:part-of-name."


def _remember(context: typer.Context, value: bool) -> bool:
    """Errors must know it too, wherever they are caught: the meta dictionary is shared by nested commands."""
    if value:
        context.meta[_JSON] = True
    return value


def wants_json(context: typer.Context) -> bool:
    """Whether the command that runs was given --json."""
    return bool(context.meta.get(_JSON, False))


@contextlib.contextmanager
def remembered(words: Sequence[str]) -> Generator[None]:
    """Keeps what was typed while it runs, for whoever wants to repeat it."""
    token = _LINE.set(shlex.join(["dashi", *words]))
    try:
        yield
    finally:
        _LINE.reset(token)


def typed() -> str:
    """The command line that runs, as it was typed; empty where there is none."""
    return _LINE.get()


def whole(text: str | int) -> int:
    """A whole number as people write it: 1000000, 1_000_000, 1e6."""
    try:
        return int(text)
    except ValueError:
        pass
    from decimal import Decimal

    try:
        number = Decimal(text)
        exact = abs(number) < _MANY and number == number.to_integral_value()
    except ArithmeticError:
        exact = False
    if not exact:
        raise typer.BadParameter(f"{text!r} is not a whole number; write for instance 1000000 or 1e6.")
    return int(Decimal(text))


def whole_within(low: int, high: int) -> Callable[[str | int], int]:
    """A parser of whole numbers between two others."""

    def parse(text: str | int) -> int:
        number = whole(text)
        if not low <= number <= high:
            raise typer.BadParameter(f"{number} is not in the range {low}<=x<={high}.")
        return number

    return parse


def example(line: str) -> str:
    """The epilog of a command's help: one example that works as printed."""
    # The mark says that the lines are not to be wrapped; a shell goes on reading after &&.
    return "\b\nExample:\n  " + line.replace(" && ", " &&\n  ")


def _kernel_folders() -> list[Path]:
    import dashi

    return sorted(path.parent for path in (Path(dashi.__file__).parent / "kernels").glob("[a-z]*/[a-z]*/kernel.py"))


def complete_kernels(incomplete: str) -> list[tuple[str, str]]:
    """Kernels by the names of their folders, with their families."""
    folders = [folder for folder in _kernel_folders() if folder.name.startswith(incomplete)]
    return sorted((folder.name, folder.parent.name) for folder in folders)


def complete_families(incomplete: str) -> list[str]:
    """Families of kernels."""
    families = sorted({folder.parent.name for folder in _kernel_folders()})
    return [family for family in families if family.startswith(incomplete)]


def complete_devices(incomplete: str) -> list[tuple[str, str]]:
    """What --device takes; which Vulkan devices there are is not looked up."""
    return [(name, text) for name, text in _DEVICES.items() if name.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """Models that `dashi flow fit` fits, those of other installed packages too."""
    from dashi._entry_points import MODELS, declarations

    return [name for name in declarations(MODELS).by_name if name.startswith(incomplete)]


def complete_initial(incomplete: str) -> list[str]:
    """Named initial conditions; where none begins like this, the shell offers files."""
    return [name for name in INITIAL_CONDITIONS if name.startswith(incomplete)]


def complete_fields(incomplete: str) -> list[str]:
    """Fields that frames of a flow can hold."""
    return [name for name in FIELDS if name.startswith(incomplete)]


def complete_peers(incomplete: str) -> list[str]:
    """Libraries that benchmarks measure beside dashi."""
    return [name for name in PEERS if name.startswith(incomplete)]


class RunType(StrEnum):
    """Element types of states."""

    float32 = "float32"
    float64 = "float64"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", is_eager=True, callback=_remember)]
OneDevice = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help=_DEVICE_HELP, rich_help_panel=DEVICE, autocompletion=complete_devices
    ),
]
OpDevice = Annotated[
    str | None,
    typer.Option(
        "--op-device",
        rich_help_panel=DEVICE,
        metavar="DEVICE",
        help="Instead of --device, for steps.",
        autocompletion=complete_devices,
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help=f"{_DEVICE_HELP} Repeatable.",
        rich_help_panel=DEVICE,
        autocompletion=complete_devices,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a run of another command or with other settings in --out."),
]
StatesEvery = Annotated[
    int | None,
    typer.Option(
        "--states-every",
        parser=whole,
        rich_help_panel=OUTPUT,
        metavar="INTEGER",
        help="With --out: keep the states every so many steps; the certificate names them, and `dashi verify --jobs` "
        "repeats what lies between them apart.",
    ),
]
StatesBits = Annotated[
    int | None,
    typer.Option(
        "--states-bits", parser=whole, rich_help_panel=OUTPUT, metavar="[128|256]",
        help="With --states-every: bits of the digests of kept states. Default: 128.",
    ),
]  # fmt: skip
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        rich_help_panel=OUTPUT,
        metavar="FILE",
        help="A trace of stages and device queues, for ui.perfetto.dev.",
    ),
]
