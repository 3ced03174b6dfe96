"""What happens to atoms, in whole quanta: events, and the ledger of where circulation went.

An event names the atoms that end (parents) and those that begin (children), and what moved between the atoms and named
accounts. Two quantities are kept, both in whole quanta: the signed circulation and the magnitude. What atoms lose an
account gains, so for every event and both quantities

    sum over parents = sum over children + sum over transfers,

exactly; a ledger refuses an event that does not balance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from dashi.errors import InputError

Account = Literal["pruned", "annihilated", "viscosity", "budget", "refit", "background"]
Kind = Literal["prune", "merge", "annihilate", "split", "budget", "refit", "birth", "death"]
ACCOUNTS: Final[tuple[Account, ...]] = get_args(Account)
"""pruned: atoms too weak. annihilated: opposite signs that met. viscosity: what diffused away. budget: atoms beyond the
budget. refit: what a fit to a field added or took. background: what went into the background, or came out of it."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True)
class Transfer:
    """Quanta that atoms gave to an account; negative numbers came out of it."""

    account: Account
    signed: int
    magnitude: int

    def __post_init__(self) -> None:
        if self.account not in ACCOUNTS:
            raise InputError(f"there is no account {self.account!r:.40}.", f"use one of {', '.join(ACCOUNTS)}.")


@dataclass(frozen=True)
class AtomEvent:
    """One event. Atoms are (id, signed quanta) as they were before it, or are after it."""

    step: int
    kind: Kind
    parents: tuple[tuple[int, int], ...]
    children: tuple[tuple[int, int], ...]
    transfers: tuple[Transfer, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"there is no kind of event {self.kind!r:.40}.", f"use one of {', '.join(KINDS)}.")

    @property
    def residual(self) -> tuple[int, int]:
        """What the event leaves unexplained of (signed circulation, magnitude), in quanta: (0, 0) where it balances."""
        signed, magnitude = ((_total(self.parents, by) - _total(self.children, by)) for by in (int, abs))
        return (
            signed - sum(one.signed for one in self.transfers),
            magnitude - sum(one.magnitude for one in self.transfers),
        )

    def document(self) -> dict[str, Any]:
        """The event as plain lists and numbers, for JSON; `from_document` is the inverse."""
        return {
            "step": self.step, "kind": self.kind, "parents": [list(atom) for atom in self.parents],
            "children": [list(atom) for atom in self.children],
            "transfers": [[one.account, one.signed, one.magnitude] for one in self.transfers],
        }  # fmt: skip

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> AtomEvent:
        """The event of a document; an InputError where it is none."""
        try:
            return cls(
                _integer(document["step"]), document["kind"], _atoms(document["parents"]), _atoms(document["children"]),
                tuple(Transfer(account, _integer(s), _integer(m)) for account, s, m in document["transfers"]),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"this is no event: {document!r:.80}.", "pass what `AtomEvent.document()` gave."
            ) from error


class Ledger:
    """All events of a run in order, and the balance of every account."""

    def __init__(self, events: Iterable[AtomEvent] = ()) -> None:
        self._events: list[AtomEvent] = []
        self._balances = {name: [0, 0] for name in ACCOUNTS}
        for event in events:
            self.record(event)

    @property
    def events(self) -> Sequence[AtomEvent]:
        return tuple(self._events)

    @property
    def balances(self) -> Mapping[Account, tuple[int, int]]:
        """What every account received: (signed, magnitude) in quanta."""
        return {name: (self._balances[name][0], self._balances[name][1]) for name in ACCOUNTS}

    @property
    def counts(self) -> Mapping[str, int]:
        """How many events of each kind there were."""
        return dict(sorted(Counter(event.kind for event in self._events).items()))

    def record(self, event: AtomEvent) -> None:
        """Enters an event; an InputError where it does not balance, or is earlier than the last."""
        if event.residual != (0, 0):
            signed, magnitude = event.residual
            raise InputError(
                f"a {event.kind} after step {event.step} leaves {signed} signed quanta and {magnitude} of magnitude "
                f"unexplained.",
                "name the account of all that atoms lose.",
            )
        if self._events and event.step < self._events[-1].step:
            raise InputError(
                f"an event after step {event.step} comes behind one of step {self._events[-1].step}.",
                "record events in the order of steps.",
            )
        self._events.append(event)
        for one in event.transfers:
            self._balances[one.account][0] += one.signed
            self._balances[one.account][1] += one.magnitude

    def unattributed(self, before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int]:
        """What the atoms lost between two states, (signed quanta, magnitude) each, and no account received: (0, 0)
        where the books close. `before` is the state ahead of the first event."""
        received = [sum(balance[k] for balance in self._balances.values()) for k in (0, 1)]
        return before[0] - after[0] - received[0], before[1] - after[1] - received[1]

    def document(self) -> dict[str, Any]:
        """Events and balances for JSON; `Ledger.from_document` reads the events and counts anew."""
        return {
            "events": [event.document() for event in self._events],
            "accounts": {name: {"signed": s, "magnitude": m} for name, (s, m) in self._balances.items()},
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Ledger:
        """The ledger of a document."""
        rows = document.get("events")
        if not isinstance(rows, list):
            raise InputError("the document has no list `events`.", "pass what `Ledger.document()` gave.")
        return cls(AtomEvent.from_document(row) for row in cast("list[Any]", rows))


def _total(atoms: Sequence[tuple[int, int]], by: Any) -> int:
    return sum(by(quanta) for _, quanta in atoms)


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


def _atoms(rows: Any) -> tuple[tuple[int, int], ...]:
    return tuple((_integer(number), _integer(quanta)) for number, quanta in rows)
