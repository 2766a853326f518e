"""Studies in real folders, filled with made-up runs that look like measured ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path

from hdrh.histogram import HdrHistogram
from optuna.trial import TrialState, create_trial

from lsmtune.experiment.folder import StudyFolder, default_folder
from lsmtune.experiment.store import Role
from lsmtune.model.config import Build, Config, EngineIdentity, OptionValue, option_text
from lsmtune.model.measurement import (
    Interval,
    Latency,
    Measurement,
    OptionNotTaken,
    Outcome,
    PhaseMeasurement,
    RunError,
    Verification,
)
from lsmtune.model.metrics import LATENCIES, PERCENTILES
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.importance import Method
from lsmtune.report.source import read_study
from lsmtune.search.sampler import suggestion_of
from lsmtune.study.build import load_spec
from lsmtune.study.spec import Spec
from lsmtune.study.start import open_study
from made_up import add_run, made_up_phase

ROCKSDB = EngineIdentity("rocksdb", "10.2.1", "/opt/lsmtune/librocksdb.so", Build.RELEASE)
LEVELDB = EngineIdentity("leveldb", "1.23", "/usr/lib/libleveldb.so.1d", Build.ASSERTIONS_ON)
STARTED_UNIX_S = 1_795_226_400.0
Options = Mapping[str, OptionValue]
# Of the space of STUDY.
BEST: dict[str, OptionValue] = {
    "write_buffer_size": 8 << 20,
    "min_write_buffer_number_to_merge": 2,
    "level0_file_num_compaction_trigger": 4,
    "compression": "kLZ4Compression",
    "block_based_table_factory.block_size": 4096,
}

STUDY = """\
version: 1
name: fillrandom on rocksdb
engine: {name: rocksdb}
workload: {name: fillrandom, num: 1e6, key_bytes: 20, value_bytes: 100}
options: {max_background_jobs: 2}
space:
  write_buffer_size: {type: int, low: 2MiB, high: 64MiB, log: true, unit: bytes, default: 64MiB}
  min_write_buffer_number_to_merge: {type: int, low: 1, high: 8, default: 1}
  level0_file_num_compaction_trigger: {type: int, low: 2, high: 16, default: 4}
  compression: {type: categorical, choices: [kNoCompression, kSnappyCompression, kLZ4Compression]}
  block_based_table_factory.block_size: {type: int, low: 2KiB, high: 64KiB, log: true, unit: bytes}
budget: {trials: 40}
seed: 7
"""
LEVELDB_STUDY = """\
version: 1
name: leveldb lab
engine: {name: leveldb}
workload: {name: fillrandom, num: 1e5}
objective: {metric: latency_us_p99}
space:
  write_buffer_size: {type: int, low: 1MiB, high: 128MiB, log: true, unit: bytes}
  max_file_size: {type: int, low: 1MiB, high: 128MiB, step: 1MiB, unit: bytes}
budget: {trials: 8}
"""


class SampleStudy:
    """A study folder that tests fill; its draws follow from `seed`."""

    def __init__(self, directory: Path, text: str = STUDY, *, seed: int = 1) -> None:
        self.file = directory / "study.yaml"
        self.file.write_text(text, encoding="utf-8")
        self.spec: Spec = load_spec(self.file)
        self.path = default_folder(self.file)
        self.folder = open_study(self.path, self.spec)
        self.engine = ROCKSDB if self.spec.engine_name == "rocksdb" else LEVELDB
        self.random = random.Random(seed)
        self.baseline = Config({**self.spec.fixed, **self.spec.baseline.options})

    def close(self) -> None:
        self.folder.close()

    def opened(self) -> StudyFolder:
        """The folder as a report sees it."""
        return StudyFolder.open(self.path)

    def draw(self) -> dict[str, OptionValue]:
        """Random values of the space."""
        values: dict[str, OptionValue] = {}
        for parameter in self.spec.space.parameters:
            numbers = parameter.numbers
            if numbers is None:
                values[parameter.name] = self.random.choice(parameter.choices)
            elif numbers.log:
                doublings = (int(numbers.high) // int(numbers.low)).bit_length() - 1
                values[parameter.name] = int(numbers.low) << self.random.randint(0, doublings)
            else:
                step = int(numbers.step or 1)
                steps = (int(numbers.high) - int(numbers.low)) // step
                values[parameter.name] = int(numbers.low) + step * self.random.randint(0, steps)
        return values

    def measured(self, options: Options, speed: float = 1.0, seed: int = 1) -> Measurement:
        """A run that ended well; `speed` is the throughput over that of the default."""
        noise = self.random.gauss(1.0, 0.015)
        phase = _phase(self.random, 320_000.0 * speed * noise)
        return Measurement(
            outcome=Outcome.OK,
            engine=self.engine,
            options={name: option_text(value) for name, value in options.items()},
            workload=self.spec.workload.name,
            seed=seed,
            started_unix_s=STARTED_UNIX_S + 10 * seed,
            elapsed_s=phase.elapsed_s + phase.drain_s + 0.4,
            phases=(phase,),
            verification=Verification(4100, 0, 0, 0.02),
        )

    def failed(self, outcome: Outcome, message: str, options: Options) -> Measurement:
        """A run that did not end well."""
        return replace(
            self.measured(options),
            outcome=outcome,
            phases=(),
            verification=None,
            error=RunError(outcome.value, message),
        )

    def add(
        self,
        role: Role,
        measurement: Measurement,
        config: Config,
        *,
        trial: int | None = None,
        pair: int | None = None,
        workload: int = 0,
        rung: int | None = None,
        repeat: int = 0,
    ) -> int:
        return add_run(
            self.folder.measurements,
            role,
            measurement,
            config=config,
            trial=trial,
            pair=pair,
            workload=workload,
            rung=rung,
            repeat=repeat,
        )

    def add_baseline(self, speed: float = 1.0) -> None:
        self.add(Role.BASELINE, self.measured(self.baseline.options, speed), self.baseline)

    def add_anchor(self, number: int, speed: float = 1.0) -> None:
        """The baseline again, between two trials."""
        run = self.measured(self.baseline.options, speed)
        self.add(Role.ANCHOR, run, self.baseline, repeat=number)

    def add_calibration(self, pair: int, speeds: tuple[float, float], method: str) -> None:
        """The baseline against itself."""
        for repeat, speed in enumerate(speeds):
            run = replace(self.measured(self.baseline.options, speed), paired_by=method)
            self.add(Role.CALIBRATION, run, self.baseline, pair=pair, repeat=repeat)

    def add_trial(
        self, number: int, options: Options, measurement: Measurement, repeat: int = 0
    ) -> None:
        config = Config({**self.spec.fixed, **options}, f"study.yaml#{number}")
        self.add(Role.TRIAL, measurement, config, trial=number, repeat=repeat)

    def add_rung(self, number: int, options: Options, measurement: Measurement, rung: int) -> None:
        """A smaller run of a trial."""
        config = Config({**self.spec.fixed, **options}, f"study.yaml#{number}")
        self.add(Role.RUNG, measurement, config, trial=number, rung=rung)

    def end_trial(self, number: int, outcome: str, state: TrialState) -> None:
        """Keep in the Optuna study how a trial ended; trials come in the order of numbers."""
        rows = self.folder.measurements.all()
        options = next(row.config.options for row in rows if row.trial == number)
        space = self.spec.space
        known = space.distributions()
        ran = suggestion_of(space, space.variables_of(space.point_of(options) or {}))
        distributions = {name: known[name] for name in ran.params}
        of_trial = {"params": dict(ran.params), "distributions": distributions}
        begun = self.folder.begin_trial(create_trial(state=TrialState.RUNNING, **of_trial))
        assert begun == number
        values = [1.0] if state is TrialState.COMPLETE else None
        self.folder.end_trial(number, state, values, outcome=outcome)

    def pruned(self, options: Options, after_s: float, rate: float) -> Measurement:
        """A run that was ended in its measure phase."""
        steps = int(after_s / 0.25)
        intervals = tuple(
            Interval(
                0.25 * k,
                0.25,
                int(rate * 0.25),
                int(rate * 0.25) * k,
                rate,
                150_000_000,
                pending_compaction_bytes=0,
            )
            for k in range(1, steps + 1)
        )
        return replace(
            self.measured(options),
            outcome=Outcome.PRUNED,
            phases=(),
            verification=None,
            elapsed_s=after_s + 0.2,
            intervals_unfinished=intervals,
            phase_unfinished=self.spec.workload.phases[-1].name,
        )

    def add_proof(self, options: Options, speed: float, pairs: int = 5, first: int = 0) -> None:
        config = Config({**self.spec.fixed, **options}, "study.yaml#best")
        for pair in range(first, first + pairs):
            seed = 1000 + pair
            tuned = self.measured(config.options, speed, seed)
            baseline = self.measured(self.baseline.options, 1.0, seed)
            self.add(Role.PROOF_BASELINE, baseline, self.baseline, pair=pair)
            self.add(Role.PROOF_CANDIDATE, tuned, config, pair=pair)

    def set_verdict(
        self, outcome: VerdictOutcome, ratio: float | None, width: float = 0.04
    ) -> None:
        interval = (None, None) if ratio is None else (ratio - width, ratio + width)
        self.folder.measurements.set_verdict(
            Verdict(
                outcome,
                self.spec.objective.metric,
                self.spec.objective.direction.value,
                0.95,
                pairs=0 if ratio is None else 5,
                ratio=ratio,
                ratio_low=interval[0],
                ratio_high=interval[1],
                why="the interval includes 1" if outcome is VerdictOutcome.NOT_PROVEN else "",
            )
        )


def speed_of(options: Options) -> float:
    """A made-up response: larger buffers, light compression and an early trigger help."""
    buffer = float(options["write_buffer_size"]) / 2**20
    trigger = float(options["level0_file_num_compaction_trigger"])
    merge = float(options["min_write_buffer_number_to_merge"])
    gain = 0.75 + 0.11 * buffer.as_integer_ratio()[0].bit_length()
    gain -= 0.012 * abs(trigger - 9) + 0.03 * abs(merge - 3)
    return gain * (1.08 if options["compression"] == "kLZ4Compression" else 1.0)


def fill(
    study: SampleStudy, trials: int = 40, speed: Callable[[Options], float] = speed_of
) -> dict[str, OptionValue]:
    """A baseline and a search with some failures; returns the options of the best trial."""
    study.add_baseline()
    best: dict[str, OptionValue] = {}
    best_speed = 0.0
    for number in range(trials):
        options = study.draw()
        if number % 13 == 6:
            run = study.failed(Outcome.TIMEOUT, "deadline of 60 s passed", options)
        elif number % 17 == 11:
            run = study.failed(Outcome.OUT_OF_MEMORY, "4.1 GiB of 4 GiB resident", options)
        else:
            run = study.measured(options, speed(options))
            value = study.spec.objective.value(run) or 0.0
            if value > best_speed:
                best, best_speed = options, value
        study.add_trial(number, options, run)
    return best


def finished(directory: Path) -> SampleStudy:
    """A study of RocksDB that ended in a proven gain."""
    study = SampleStudy(directory)
    best = fill(study)
    study.add_proof(best, speed_of(best))
    study.set_verdict(VerdictOutcome.BETTER, round(speed_of(best), 3))
    study.folder.write_result("OPTIONS-tuned", "[Version]\n")
    study.folder.write_result("result.json", {"format_version": 1})
    return study


def with_option_not_taken(run: Measurement) -> Measurement:
    return replace(run, options_not_taken=(OptionNotTaken("max_open_files", "5", "20"),))


def histogram_base64(values_ns: list[int], tens: int = 0) -> str:
    """`values_ns` as the driver stores them, encoded by another implementation than ours.

    That takes long for each: of the first `tens` groups of ten alike, one stands for all.
    """
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for value in values_ns[5 : 10 * tens : 10]:
        histogram.record_value(value, 10)
    for value in values_ns[10 * tens :]:
        histogram.record_value(value)
    encoded: bytes = histogram.encode()
    return encoded.decode()


def _phase(draws: random.Random, throughput_ops_s: float) -> PhaseMeasurement:
    operations = 1_000_000
    elapsed_s, drain_s = operations / throughput_ops_s * 0.9, operations / throughput_ops_s * 0.1
    mean_ns = 1e9 / throughput_ops_s
    tail = [int(mean_ns * draws.paretovariate(1.6)) for _ in range(3000)]
    latency = _latency(sorted(int(0.6 * t) + 200 for t in tail))
    return made_up_phase(
        operations=operations,
        elapsed_s=elapsed_s,
        drain_s=drain_s,
        throughput_ops_s=operations / elapsed_s,
        sustained_throughput_ops_s=throughput_ops_s,
        user_bytes_written=120 * operations,
        rss_bytes_max=210_000_000,
        database_bytes=74_000_000,
        started_unix_us=int(STARTED_UNIX_S * 1e6),
        finished_unix_us=int((STARTED_UNIX_S + elapsed_s) * 1e6),
        **{name: getattr(latency, name) for name in LATENCIES},
        latencies={"put": latency},
        intervals=_intervals(draws, elapsed_s, operations / elapsed_s),
        write_amplification=2.1,
        stall_s=0.1,
    )


def _latency(ns: list[int]) -> Latency:
    def at(share: float) -> float:
        return ns[min(int(share * len(ns)), len(ns) - 1)] / 1e3

    return Latency(
        count=len(ns),
        latency_us_mean=sum(ns) / len(ns) / 1e3,
        latency_us_max=ns[-1] / 1e3,
        histogram_ns_base64=histogram_base64(ns, tens=9 * len(ns) // 100),
        **{name: at(percent / 100) for name, percent in PERCENTILES.items()},
    )


def _intervals(draws: random.Random, elapsed_s: float, rate: float) -> tuple[Interval, ...]:
    steps, total, level = [], 0, 1.25
    for number in range(1, int(elapsed_s / 0.25) + 1):
        level = 0.7 * level + 0.3 * draws.gauss(0.97, 0.12)
        operations = int(rate * 0.25 * level)
        total += operations
        steps.append(
            Interval(number * 0.25, 0.25, operations, total, operations / 0.25, 150_000_000)
        )
    return tuple(steps)


def analysed(sample: SampleStudy, method: Method | None = Method.PED_ANOVA) -> StudyAnalysis:
    with sample.opened() as folder:
        return StudyAnalysis(read_study(folder), method)


def changed(analysis: StudyAnalysis, **tables: object) -> StudyAnalysis:
    """`analysis` with other tables."""
    found = copy(analysis)
    vars(found).update(tables)
    return found
