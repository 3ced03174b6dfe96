"""The passes of a radix sort: eight bits at a time from the lowest, all stable, so that the last leaves all in order.

The keys are cut into blocks of whole tiles. A pass counts the digits of every block, sums the counts over blocks (what
the blocks before have of a digit), and moves the keys, each workgroup one block, tile by tile. Workgroups never wait
for each other. D. Merrill, A. Grimshaw, "High performance and scalable radix sorting", Parallel Processing Letters 21
(2011), doi:10.1142/S0129626411000187, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Dispatch, Limits, Number, Scalar, Shader, Spec
from dashi.types import Cost, DType

LANES: Final = 256
DIGITS: Final = 256
DIGIT_BITS: Final = 8
TUNINGS: Final = {
    "items15": {"items": 15, "blocks": 2048},
    "items9": {"items": 9, "blocks": 2048},
    "items5": {"items": 5, "blocks": 32},
}
"""`items`: keys of an invocation, odd and at most 15; 256 times as many are a tile, which a workgroup sorts in shared
memory at once. `blocks`: blocks that are aimed at, enough to fill a device several times over, few enough for their
counts to cost nothing. The last is for processors: their cores are few, and their compilers slow."""
UNROLL: Final = ("GL_EXT_control_flow_attributes",)
PUSHED: Final = tuple(Scalar(name, "u32") for name in ("n", "blocks", "block_keys", "shift", "kind", "flip"))
CARRIED: Final = tuple(Scalar(name, "u32") for name in ("words", "numbered", "writes_keys"))
_ITEMS: Final = Spec("ITEMS", 15)
_SPLITS: Final = 2
"""Times that a tile is sorted, by half a digit each."""
_KINDS: Final = {"u": 0, "i": 1, "f": 2}


def shaders(payload: bool, key: Literal["W", "u32"] = "W") -> dict[str, Shader]:
    """The three shaders of a pass; with a payload, `words` words for every key are moved along. Keys are words as wide
    as the variant's type, or u32 in every variant."""
    source, counts, totals = Binding("source", key), Binding("counts", "u32"), Binding("totals", "u32")
    result = Binding("result", key, "write")
    word = "" if key == "W" else "#undef W\n#define W uint\n"
    carried = (Binding("values", "u32"), Binding("moved", "u32", "write")) if payload else ()
    return {
        "count": Shader(
            (source, Binding("counts", "u32", "write")),
            PUSHED,
            (_ITEMS,),
            local=(LANES, 1, 1),
            file="count.comp",
            extensions=UNROLL,
            prelude=word,
        ),
        "rows": Shader(
            (Binding("counts", "u32", "readwrite"), Binding("totals", "u32", "write")),
            (Scalar("blocks", "u32"), Scalar("share", "u32")),
            local=(LANES, 1, 1),
            file="rows.comp",
            extensions=UNROLL,
        ),
        "main": Shader(
            (source, counts, totals, result, *carried),
            (*PUSHED, *CARRIED) if payload else PUSHED,
            (_ITEMS, Spec("KEY_WORDS", 1)),
            local=(LANES, 1, 1),
            extensions=UNROLL,
            prelude=word + ("#define PAYLOAD\n" if payload else ""),
        ),
    }


def prefer(limits: Limits, variant: str) -> str:
    """The tuning for a device."""
    return "items5" if limits.software else "items15"


def pass_count(kind: DType) -> int:
    """Passes over keys of a type: an even number."""
    return 8 * kind.size // DIGIT_BITS


class Passes:
    """The dispatches of a sort of n > 0 keys, of the call's type unless `key` says another; `payload` words go with
    every key."""

    def __init__(self, call: Call, n: int, descending: bool, payload: int = 0, key: DType | None = None) -> None:
        self.n, self.payload = n, payload
        key = key or call.dtype
        self.kind, self.flip = _KINDS[key.kind], 0xFFFFFFFF * int(descending)
        self.key_words = key.size // 4
        self.items = call.tuning["items"]
        tile = self.items * LANES
        self.tile_trips = 1 + _SPLITS + payload
        most = max(1, call.limits.loop_trips // self.tile_trips)
        blocks = min(call.tuning["blocks"], call.limits.groups)
        self.tiles = min(ceil_div(ceil_div(n, tile), blocks), most)
        """Tiles of a block."""
        self.block_keys = self.tiles * tile
        self.blocks = ceil_div(n, self.block_keys)

    @property
    def scratch(self) -> dict[str, tuple[str, int]]:
        """Counts of every digit by block, and over all blocks."""
        return {"counts": ("u32", DIGITS * self.blocks), "totals": ("u32", DIGITS)}

    def dispatches(
        self,
        number: int,
        source: str,
        result: str,
        carried: Sequence[str] = (),
        *,
        numbered: bool = False,
        writes_keys: bool = True,
    ) -> tuple[Dispatch, ...]:
        """Pass `number` from one array of keys to another, and of `carried` values to where they are moved. The values
        are the places of the keys, and not read, if `numbered`; with a payload the keys may be left behind."""
        push: dict[str, Number] = {
            "n": self.n,
            "blocks": self.blocks,
            "block_keys": self.block_keys,
            "shift": DIGIT_BITS * number,
            "kind": self.kind,
            "flip": self.flip,
        }
        more = {"words": self.payload, "numbered": int(numbered), "writes_keys": int(writes_keys)}
        groups = (self.blocks, 1, 1)
        share = ceil_div(self.blocks, LANES)
        count = Dispatch("count", (source, "counts"), push, groups, self.tiles, {"ITEMS": self.items})
        rows = Dispatch(
            "rows", ("counts", "totals"), {"blocks": self.blocks, "share": share}, (1, DIGITS, 1), 2 * share
        )
        move = Dispatch(
            "main",
            (source, "counts", "totals", result, *carried),
            {**push, **more} if self.payload else push,
            groups,
            self.tiles * self.tile_trips,
            {"ITEMS": self.items, "KEY_WORDS": self.key_words},
        )
        return count, rows, move


def pass_cost(kind: DType, n: int, payload: int = 0, passes: int | None = None) -> Cost:
    """What the passes (all that the type has, by default) move: keys are read twice and written once in each, the
    payload is read and written."""
    passes = pass_count(kind) if passes is None else passes
    return Cost(bytes=passes * n * (3 * kind.size + 8 * payload), dispatches=3 * passes) if n else Cost()
