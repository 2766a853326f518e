"""Studies of which the size of the runs is decided, and runners that flush by what is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fake_runner import FakeRunner
from study_parts import Recorder, make_spec

from lsmtune.model.config import Build, EngineIdentity
from lsmtune.model.measurement import Interval, Measurement, Outcome
from lsmtune.model.request import RunRequest
from lsmtune.study.build import parse_spec
from lsmtune.study.loop import tune
from lsmtune.study.observer import TuneResult
from lsmtune.study.spec import Spec
from lsmtune.study.start import open_study

ROCKSDB = EngineIdentity("rocksdb", "10.2.1", None, Build.RELEASE)
LARGE = "{name: overwrite, num: 10000000, value_bytes: 100}"  # 1.1 GiB


class Flushing(FakeRunner):
    """Flushes once for every `each` records that are written; a run takes a second per 1,000."""

    def __init__(self, each: int) -> None:
        super().__init__(noise=0.0)
        self._each = each

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        num = request.workload.num
        self.now_s += num / 1000.0 - self.fake_s
        figures = {"flushes": num // self._each, "compactions": 1, "user_bytes_written": num}
        phases = tuple(replace(p, **figures) for p in found.phases)  # type: ignore[arg-type]
        return replace(found, phases=phases)


class ByBytes(FakeRunner):
    """A run takes a second for each 50,000 operations, and flushes by the bytes of its memtable."""

    def __init__(self) -> None:
        super().__init__(noise=0.0, engine=ROCKSDB)

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        num, options = request.workload.num, request.config.options
        elapsed_s = (request.workload.phases[-1].operations_per_thread or num) / 50_000
        self.now_s += elapsed_s - self.fake_s
        memtable_bytes = int(str(options.get("write_buffer_size", 64 << 20)))
        written = num * (request.workload.key_bytes + request.workload.value_bytes)
        figures = {
            "elapsed_s": elapsed_s,
            "flushes": written // memtable_bytes,
            "compactions": 1,
            "user_bytes_written": written,
        }
        phases = tuple(replace(p, **figures) for p in found.phases)  # type: ignore[arg-type]
        return replace(found, phases=phases, elapsed_s=elapsed_s)


# A metric that grows with a run, so that all trials have runs of one length.
ONE_LENGTH = "guards: [stall_s <= 2 * baseline]"


def large(path: Path, budget: str, memory: str = "1GiB", asked: str = ONE_LENGTH) -> Spec:
    more = f"limits: {{deadline: 1h, memory: {memory}}}\n{asked}"
    spec = make_spec(path, budget=budget, more=more)
    text = spec.text.replace("workload:\n  name: fillrandom\n  num: 1000", f"workload: {LARGE}")
    return parse_spec(text, path / "small.yaml")


def run_large(spec: Spec, folder: Path, runner: FakeRunner, observer: Recorder) -> TuneResult:
    with open_study(folder, spec) as opened:
        return tune(
            *(spec, opened, runner, ROCKSDB, observer), stop=observer.stop, clock=runner.clock
        )


class Buffering(FakeRunner):
    """Flushes 9 times in 6,000 operations with 2 MiB of memtable: large ones flush rarely."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        done = sum(phase.operations or 0 for phase in request.workload.phases[-1:])
        size = int(str(request.config.options.get("write_buffer_size", 2 << 20))) / (2 << 20)
        flushes = round(9 * done / 6000 / size)
        figures = {"flushes": flushes, "compactions": flushes // 2, "user_bytes_written": done}
        phases = tuple(replace(p, **figures) for p in found.phases)  # type: ignore[arg-type]
        return replace(found, phases=phases)


class FallingAtFirst(Buffering):
    """The rate falls from interval to interval where the memtable is that of the baseline."""

    def _measurement(self, request: RunRequest, outcome: Outcome) -> Measurement:
        found = super()._measurement(request, outcome)
        if request.config.options["write_buffer_size"] != 2 << 20:
            return found
        series = tuple(Interval(n / 4, 0.25, 25, 25 * n, 100.0 - n, None) for n in range(1, 41))
        return replace(found, phases=tuple(replace(p, intervals=series) for p in found.phases))


def mixed(path: Path, budget: str = "{trials: 12}") -> Spec:
    workload = "workload:\n  name: ycsb-a\n  recordcount: 1000\n  operationcount: 6000\n"
    text = make_spec(path, budget=budget, more="baseline: {write_buffer_size: 2MiB}").text
    text = text.replace("workload:\n  name: fillrandom\n  num: 1000\n", workload)
    return parse_spec(text, path / "small.yaml")


class Rising(Buffering):
    """The larger the memtable, the faster the run, as nothing was paid for yet."""

    def __init__(self) -> None:
        super().__init__(speed=lambda options: float(str(options["write_buffer_size"])), noise=0.0)
