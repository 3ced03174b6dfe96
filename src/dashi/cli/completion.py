"""What the shell offers after <Tab>: names that are known without opening a device or importing NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
