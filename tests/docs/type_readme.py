"""Types the README's commands, one after another, into one shell, as a new user does in a fresh clone.

    python3 tests/docs/type_readme.py [--all]

Prints each command with its exit code, its time and its last lines; exits with the number of commands that failed.
It needs a network and some minutes. `--all` types what takes longest too: all tests, and the certificate of 300,000
steps. For a fresh machine, run it in a chroot that debootstrap has made, as a user without rights.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOWN = 12


def commands() -> tuple[list[str], list[str]]:
    """Lines of the shell blocks with the README's program after them, and what takes long."""
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    typed = [line for language, block in blocks if language == "sh" for line in block.splitlines()]
    program = Path(tempfile.mkdtemp()) / "shortest.py"
    program.write_text(next(block for language, block in blocks if language == "python"))
    flagship = re.findall(r"`(python benchmarks/long_rollout.py && dashi verify [^`]+)`", text)
    return [*typed, f"python {program}", *flagship], ["./dev test", *flagship]


def main() -> int:
    typed, slow = commands()
    failed = 0
    with subprocess.Popen(
        ["sh"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        for line in typed:
            if line in slow and "--all" not in sys.argv:
                print(f"left out: {line}", flush=True)
                continue
            started = time.monotonic()
            shell.stdin.write(f"{line} </dev/null\necho exit-code:$?\n")
            said: list[str] = []
            while not (said and said[-1].startswith("exit-code:")):
                said.append(shell.stdout.readline() or "exit-code:255\n")
            code = int(said.pop().partition(":")[2])
            failed += code != 0
            print(f"{line}: exit code {code}, {time.monotonic() - started:.0f} s", flush=True)
            print("".join(f"    {text}" for text in said[-SHOWN:]), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
