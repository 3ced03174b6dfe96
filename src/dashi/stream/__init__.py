"""Chains of stages over devices: what runs where, what travels between, and that nothing waits that need not.

    plan = dashi.stream.make_plan(dashi.stream.load("chain.yaml"))
    print(plan)

docs/stream.md says what a configuration may say, and what the rules are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.stream._contracts import BufferContract as BufferContract
    from dashi.stream._contracts import ContractLedger as ContractLedger
    from dashi.stream._device_chain import DeviceChain as DeviceChain
    from dashi.stream._device_chain import ItemResult as ItemResult
    from dashi.stream._kernel_ops import KernelOp as KernelOp
    from dashi.stream._kernel_ops import kernel_op as kernel_op
    from dashi.stream._link_rates import LinkRate as LinkRate
    from dashi.stream._model import BroadcastSpec as BroadcastSpec
    from dashi.stream._model import DeviceSpec as DeviceSpec
    from dashi.stream._model import Feed as Feed
    from dashi.stream._model import Field as Field
    from dashi.stream._model import FieldSource as FieldSource
    from dashi.stream._model import LinkSpec as LinkSpec
    from dashi.stream._model import OpSettings as OpSettings
    from dashi.stream._model import OpSpec as OpSpec
    from dashi.stream._model import PayloadSchema as PayloadSchema
    from dashi.stream._model import SourceSpec as SourceSpec
    from dashi.stream._model import StageSpec as StageSpec
    from dashi.stream._model import State as State
    from dashi.stream._model import StreamConfig as StreamConfig
    from dashi.stream._op import DeviceOp as DeviceOp
    from dashi.stream._op import HostOp as HostOp
    from dashi.stream._op import StreamOp as StreamOp
    from dashi.stream._other_ops import CallableOp as CallableOp
    from dashi.stream._other_ops import OperatorOp as OperatorOp
    from dashi.stream._other_ops import StateOperator as StateOperator
    from dashi.stream._other_ops import host_op as host_op
    from dashi.stream._other_ops import operator_op as operator_op
    from dashi.stream._pipeline import Pipeline as Pipeline
    from dashi.stream._plan import Candidate as Candidate
    from dashi.stream._plan import PlanExplanation as PlanExplanation
    from dashi.stream._plan import PlannedLink as PlannedLink
    from dashi.stream._plan import PlannedStage as PlannedStage
    from dashi.stream._plan import Prediction as Prediction
    from dashi.stream._plan import StreamPlan as StreamPlan
    from dashi.stream._plan_workers import plan_workers as plan_workers
    from dashi.stream._predict import predict as predict
    from dashi.stream._report import ChainEvent as ChainEvent
    from dashi.stream._report import ChainReport as ChainReport
    from dashi.stream._report import LinkReport as LinkReport
    from dashi.stream._report import StageReport as StageReport
    from dashi.stream._side_band import SideTask as SideTask
    from dashi.stream._snapshots import observe as observe
    from dashi.stream._snapshots import snapshot as snapshot
    from dashi.stream._stage_records import stage_records as stage_records
    from dashi.stream._worker import ItemSlots as ItemSlots
    from dashi.stream._worker import Pending as Pending
    from dashi.stream._worker import Worker as Worker
    from dashi.stream._worker import WorkerOp as WorkerOp
    from dashi.stream.calibration import Calibration as Calibration
    from dashi.stream.calibration import DeviceSpeed as DeviceSpeed
    from dashi.stream.calibration import LinkSpeed as LinkSpeed
    from dashi.stream.calibration import calibrate as calibrate
    from dashi.stream.config import load as load
    from dashi.stream.config import parse as parse
    from dashi.stream.config import schema as schema
    from dashi.stream.links import Link as Link
    from dashi.stream.links import transfer_seconds as transfer_seconds
    from dashi.stream.patterns import BlockColumns as BlockColumns
    from dashi.stream.patterns import BlockRows as BlockRows
    from dashi.stream.patterns import Consensus as Consensus
    from dashi.stream.patterns import DataParallel as DataParallel
    from dashi.stream.planning import make_plan as make_plan
    from dashi.stream.running import StreamObservation as StreamObservation
    from dashi.stream.running import StreamRun as StreamRun
    from dashi.stream.running import run as run

_MODULES = {
    "_contracts": "BufferContract ContractLedger",
    "_device_chain": "DeviceChain ItemResult",
    "_kernel_ops": "KernelOp kernel_op",
    "_link_rates": "LinkRate",
    "_model": "BroadcastSpec DeviceSpec Feed Field FieldSource LinkSpec OpSettings OpSpec "
    "PayloadSchema SourceSpec StageSpec State StreamConfig",
    "_op": "DeviceOp HostOp StreamOp",
    "_other_ops": "CallableOp OperatorOp StateOperator host_op operator_op",
    "_pipeline": "Pipeline",
    "_plan": "Candidate PlanExplanation PlannedLink PlannedStage Prediction StreamPlan",
    "_plan_workers": "plan_workers",
    "_predict": "predict",
    "_report": "ChainEvent ChainReport LinkReport StageReport",
    "_side_band": "SideTask",
    "_snapshots": "observe snapshot",
    "_stage_records": "stage_records",
    "_worker": "ItemSlots Pending Worker WorkerOp",
    "calibration": "Calibration DeviceSpeed LinkSpeed calibrate",
    "config": "load parse schema",
    "links": "Link transfer_seconds",
    "patterns": "BlockColumns BlockRows Consensus DataParallel",
    "planning": "make_plan",
    "running": "StreamObservation StreamRun run",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
