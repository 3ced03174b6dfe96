"""The laboratory: whole jobs as functions, each of a frozen request, that place a device, run, certify, measure and
leave a folder of files. What a command of `dashi` does, a function here does; commands only ask and print.

    from dashi import lab
    result = lab.rollout(lab.RolloutRequest(operator=Linear(A), z0=z0, steps=1000), device="cpu", out="runs/x")

Each name is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.lab.annihilation_studies import AnnihilationStudy as AnnihilationStudy
    from dashi.lab.annihilation_studies import AnnihilationStudyRequest as AnnihilationStudyRequest
    from dashi.lab.annihilation_studies import study_annihilation as study_annihilation
    from dashi.lab.annihilations import AnnihilateRequest as AnnihilateRequest
    from dashi.lab.annihilations import MeasuredFile as MeasuredFile
    from dashi.lab.annihilations import annihilate as annihilate
    from dashi.lab.decode_parity import DecodeParity as DecodeParity
    from dashi.lab.decode_parity import ParityRequest as ParityRequest
    from dashi.lab.decode_parity import compare_decodes as compare_decodes
    from dashi.lab.decoded_rollouts import follow as follow
    from dashi.lab.decoded_rollouts import remaining_request as remaining_request
    from dashi.lab.decoded_setup import FollowRequest as FollowRequest
    from dashi.lab.demos.main_job import DemoRequest as DemoRequest
    from dashi.lab.demos.main_job import DemoResult as DemoResult
    from dashi.lab.demos.main_job import demo as demo
    from dashi.lab.demos.setting import FULL as FULL
    from dashi.lab.demos.setting import QUICK as QUICK
    from dashi.lab.demos.wave import WaveRequest as WaveRequest
    from dashi.lab.demos.wave import WaveResult as WaveResult
    from dashi.lab.demos.wave import demo_wave as demo_wave
    from dashi.lab.evaluation_plans import EvaluateRequest as EvaluateRequest
    from dashi.lab.evaluations import ModelScores as ModelScores
    from dashi.lab.evaluations import evaluate as evaluate
    from dashi.lab.events import SILENT as SILENT
    from dashi.lab.events import Events as Events
    from dashi.lab.filament_packing import PackRequest as PackRequest
    from dashi.lab.filament_packing import UnpackRequest as UnpackRequest
    from dashi.lab.filament_packing import pack_field as pack_field
    from dashi.lab.filament_packing import unpack_field as unpack_field
    from dashi.lab.filament_runs import FilamentRun as FilamentRun
    from dashi.lab.filament_runs import run_filament as run_filament
    from dashi.lab.filament_setup import FilamentRequest as FilamentRequest
    from dashi.lab.filament_tracking import TrackRequest as TrackRequest
    from dashi.lab.filament_tracking import TrackResult as TrackResult
    from dashi.lab.filament_tracking import track_threads as track_threads
    from dashi.lab.fit_setup import FitRequest as FitRequest
    from dashi.lab.fits import FittedModel as FittedModel
    from dashi.lab.fits import fit as fit
    from dashi.lab.flow_benchmark import BenchmarkRequest as BenchmarkRequest
    from dashi.lab.flow_benchmark import BenchmarkScores as BenchmarkScores
    from dashi.lab.flow_benchmark import benchmark_flow as benchmark_flow
    from dashi.lab.health import Health as Health
    from dashi.lab.health import examine as examine
    from dashi.lab.isa.machine_code import MachineCodeReport as MachineCodeReport
    from dashi.lab.isa.machine_code import MachineCodeRequest as MachineCodeRequest
    from dashi.lab.isa.machine_code import inspect_machine_code as inspect_machine_code
    from dashi.lab.kernel_checks import KernelChecks as KernelChecks
    from dashi.lab.kernel_checks import check_kernels as check_kernels
    from dashi.lab.kernel_folders import BuiltKernels as BuiltKernels
    from dashi.lab.kernel_folders import build_kernels as build_kernels
    from dashi.lab.kernel_folders import measure_accuracy as measure_accuracy
    from dashi.lab.kernel_folders import new_kernel as new_kernel
    from dashi.lab.kernel_folders import read_kernels as read_kernels
    from dashi.lab.printed_events import PrintedEvents as PrintedEvents
    from dashi.lab.rollout_setup import RolloutRequest as RolloutRequest
    from dashi.lab.rollouts import rollout as rollout
    from dashi.lab.shards.fit_data import FitData as FitData
    from dashi.lab.shards.fit_data import fit_data as fit_data
    from dashi.lab.shards.local_jobs import run_jobs as run_jobs
    from dashi.lab.shards.merging import Merged as Merged
    from dashi.lab.shards.merging import merge as merge
    from dashi.lab.shards.shard import Shard as Shard
    from dashi.lab.sheets import SheetPictures as SheetPictures
    from dashi.lab.sheets import SheetRequest as SheetRequest
    from dashi.lab.sheets import draw_sheet as draw_sheet
    from dashi.lab.simulation_setup import SimulateRequest as SimulateRequest
    from dashi.lab.simulations import simulate as simulate
    from dashi.lab.streams import FinishedStream as FinishedStream
    from dashi.lab.streams import StreamRequest as StreamRequest
    from dashi.lab.streams import run_stream as run_stream
    from dashi.lab.v4_comparison import V4Comparison as V4Comparison
    from dashi.lab.v4_comparison import V4Request as V4Request
    from dashi.lab.v4_comparison import compare_v4 as compare_v4
    from dashi.lab.verification import Verification as Verification
    from dashi.lab.verification import VerifyRequest as VerifyRequest
    from dashi.lab.verification import verify as verify

_MODULES = {
    "annihilation_studies": "AnnihilationStudy AnnihilationStudyRequest study_annihilation",
    "annihilations": "AnnihilateRequest MeasuredFile annihilate",
    "decode_parity": "DecodeParity ParityRequest compare_decodes",
    "decoded_rollouts": "follow remaining_request",
    "decoded_setup": "FollowRequest",
    "demos.main_job": "DemoRequest DemoResult demo",
    "demos.setting": "FULL QUICK",
    "demos.wave": "WaveRequest WaveResult demo_wave",
    "evaluation_plans": "EvaluateRequest",
    "evaluations": "ModelScores evaluate",
    "events": "SILENT Events",
    "filament_packing": "PackRequest UnpackRequest pack_field unpack_field",
    "filament_tracking": "TrackRequest TrackResult track_threads",
    "filament_runs": "FilamentRun run_filament",
    "filament_setup": "FilamentRequest",
    "fit_setup": "FitRequest",
    "fits": "FittedModel fit",
    "flow_benchmark": "BenchmarkRequest BenchmarkScores benchmark_flow",
    "health": "Health examine",
    "isa.machine_code": "MachineCodeReport MachineCodeRequest inspect_machine_code",
    "kernel_checks": "KernelChecks check_kernels",
    "kernel_folders": "BuiltKernels build_kernels measure_accuracy new_kernel read_kernels",
    "printed_events": "PrintedEvents",
    "rollout_setup": "RolloutRequest",
    "rollouts": "rollout",
    "shards.fit_data": "FitData fit_data",
    "shards.local_jobs": "run_jobs",
    "shards.merging": "Merged merge",
    "shards.shard": "Shard",
    "sheets": "SheetPictures SheetRequest draw_sheet",
    "simulation_setup": "SimulateRequest",
    "simulations": "simulate",
    "streams": "FinishedStream StreamRequest run_stream",
    "v4_comparison": "V4Comparison V4Request compare_v4",
    "verification": "Verification VerifyRequest verify",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
