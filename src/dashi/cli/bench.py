"""`dashi bench`: what things cost, measured in one run."""

from __future__ import annotations

import typer

from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import new_table, print_json, print_table, remark
from dashi.errors import DeviceNotFoundError

app = typer.Typer(name="bench", help="What things cost, measured in one run.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Keeps `host` a word of its own, also while it is the only one."""


@app.command("host", epilog=example("dashi bench host"))
def host(device: OneDevice = "auto", json: Json = False) -> None:
    """What the host pays to record a step and to resubmit a batch.

    Beside each stand the bare ctypes calls that it needs, in the tightest loop, and the wrappers of the PyPI package
    `vulkan` where that is installed. Times are the best of several rounds; only the ratios
    carry over to other machines.
    """
    import dashi
    from dashi.runtime import hostcost
    from dashi.runtime.vulkan_device import VulkanDevice

    with dashi.open(device, validation=False) as opened:
        if not isinstance(opened, VulkanDevice):
            raise DeviceNotFoundError(
                f"{opened.info.name!r} is not a Vulkan device, and only those record and submit.",
                "install a driver (`dashi doctor` says how), or name one: --device vulkan:0.",
            )
        remark(f"measuring on {opened.info.name}: {hostcost.ROUNDS} rounds of {hostcost.STEPS} steps")
        costs = {
            "record a step": hostcost.recording(opened),
            "resubmit and wait": hostcost.resubmission(opened),
        }
        name = opened.info.name
    if json:
        rows = {
            what: {"ours_us": c.ours, "bare_us": c.bare, "ratio": c.ratio, "wrappers_us": c.wrappers}
            for what, c in costs.items()
        }
        print_json({"device": name, "steps": hostcost.STEPS, "rounds": hostcost.ROUNDS, "costs": rows})
        return
    table = new_table("", "dashi", "bare calls", "ratio", "vulkan package")
    for what, c in costs.items():
        wrappers = "not installed" if c.wrappers is None else f"{c.wrappers:.1f} us"
        table.add_row(what, f"{c.ours:.2f} us", f"{c.bare:.2f} us", f"{c.ratio:.2f}", wrappers)
    print_table(table)
