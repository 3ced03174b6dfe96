"""What a model of proxies is: fitted to windows, rolled out on its own, kept in a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

from dashi.core.operators.operator import Parameter
from dashi.flow._finite import require_finite_frames
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy._options import Option, require_options, with_current_names
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import frame_time, require_same_flow
from dashi.flow.windows import Windows
from dashi.runtime.device import Device
from dashi.runtime.using import using_device
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.flow.evaluation._training import Training

ON_HOST: Final = "NumPy on the host"
"""Where a model runs that needs no device."""
TRANSFORMS: Final = "NumPy's own transforms"
"""What stands in for the portable references on the NumPy device, where they would be slow."""


class Model(ABC):
    """Advances proxies by itself. Frozen: nothing changes after it is fitted."""

    name: ClassVar[str]
    """The model's name on the command line and in files."""
    version: ClassVar[int] = 1
    """Rises when the same arrays would mean something else."""
    takes: ClassVar[Mapping[str, Option]] = MappingProxyType({})
    """The options of `fit`, and what each may be."""
    renamed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Former names of options, which are still read, and the names that they have now."""

    schema: Schema
    interval: float
    """Flow time between frames of a rollout."""
    training: Training | None = None
    """What it was fitted to; None where nobody knows. `evaluate` refuses to score it on that."""

    @classmethod
    def check(
        cls, schema: Schema, flow: Flow, frames: int, options: Mapping[str, Any], *, device: Device
    ) -> None:  # fmt: skip
        """Refuses what `fit` could not do with windows of so many frames, before there are any."""
        require_options(cls.name, cls.with_current_names(options), cls.takes)
        schema.require_flow(flow)

    @classmethod
    def with_current_names(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options with former names replaced. Raises InputError where one is there under both names."""
        return with_current_names(options, cls.renamed)

    @classmethod
    def begin(
        cls, schema: Schema, train: Windows, validation: Windows | None, options: Mapping[str, Any], *, device: Device
    ) -> float:
        """What every fit begins with: refuses what cannot be fitted, and gives the time between frames."""
        cls.check(schema, train.flow, train.frames, options, device=device)
        require_same_flow(train, validation)
        return frame_time(train)

    @classmethod
    def fit(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device | str,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """The model of training windows; what must be chosen is chosen on validation windows, never on others. It
        remembers both. Options are those in `takes`."""
        from dashi.flow.evaluation._training import Training

        with using_device(device) as opened:
            model = cls.learn(
                schema, train, validation, device=opened, progress=progress, **cls.with_current_names(options)
            )
        return cast("Self", model.with_training(Training.of(train, validation)))

    @classmethod
    @abstractmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Model:  # fmt: skip
        """What `fit` does in this model."""

    def with_training(self, training: Training | None) -> Self:
        """The model itself, once it knows what it was fitted to."""
        object.__setattr__(self, "training", training)
        return self

    def rollout(self, z0: Floats, frames: int, *, device: Device | str, stop_on_nonfinite: bool = True) -> Floats:
        """Proxies (m, frames + 1, D) from proxies z0 (m, D), z0 first. Nothing but z0 is read. A value that is not
        finite raises NonFiniteError, whose `rollout` is what came before it, unless `stop_on_nonfinite` is False."""
        with using_device(device) as opened:
            frames_of_z = self.advance(z0, frames, device=opened)
        return require_finite_frames(frames_of_z, f"the model {self.name}") if stop_on_nonfinite else frames_of_z

    @abstractmethod
    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        """What `rollout` does in this model; whatever is not finite is left in it."""

    def pieces(
        self, z0: Floats, frames: int, *, device: Device | str, most: int, stop_on_nonfinite: bool = True
    ) -> Iterator[Floats]:
        """The frames after z0, (m, at most `most`, D) at a time: for rollouts that are looked at on the way, stopped,
        or too long for the memory. Every piece starts from the last z of the one before, so a rollout that goes on from
        such a z has the same bits as one that never stopped; from one in a single piece it differs by rounding. A value
        that is not finite raises NonFiniteError, as in `rollout`."""
        with using_device(device) as opened:
            for piece in self.advance_by_pieces(z0, frames, device=opened, most=most):
                yield require_finite_frames(piece, f"the model {self.name}") if stop_on_nonfinite else piece

    def advance_by_pieces(self, z0: Floats, frames: int, *, device: Device, most: int) -> Iterator[Floats]:
        """What `pieces` does in this model; whatever is not finite is left in it."""
        last = z0
        for count in counts(frames, most):
            piece = self.advance(last, count, device=device)
            last = piece[:, -1]
            yield piece[:, 1:]

    @property
    def has_hidden_state(self) -> bool:
        """Whether a rollout under way carries more than its last z."""
        return False

    def explain(self, device: Device, states: int) -> tuple[str, str] | None:
        """The strategy of a rollout of so many states on a device, and why; None where there is but one."""
        return None

    def pinned(self, device: Device, states: int) -> Self:
        """The model with the strategy that it would choose for so many states: its bits are the same in a rollout of
        fewer."""
        return self

    def where(self, device: Device, states: int) -> str:
        """Where a rollout of so many states from this device runs, and by which strategy, for people."""
        return device.info.name

    @property
    @abstractmethod
    def state_size(self) -> int:
        """Numbers that the model carries from frame to frame for each state: the |z| that it is compared at."""

    @property
    @abstractmethod
    def arrays(self) -> Mapping[str, HostArray]:
        """The arrays that define the model."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Plain numbers and names that define the model; `Flow` parameters under flow_*."""
        return {}

    @classmethod
    @abstractmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]
    ) -> Model:
        """The model with these `arrays` and `parameters`. Raises InputError."""

    @property
    def description(self) -> str:
        """One line for people: what was fitted, what was chosen."""
        return self.name


def counts(frames: int, most: int) -> Iterator[int]:
    """The lengths of pieces of at most `most` frames."""
    while frames > 0:
        yield min(most, frames)
        frames -= most
