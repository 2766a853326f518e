"""What all tuners are given: cases, one space of eight options, one baseline.

A case is a workload on a machine of some size. The small machine has 256 MiB, which hold the
process and the page cache of its files; its runs take seconds. On the large one (`Case.scale`)
data, memory, memtables, levels, files and caches are so many times as large, and runs take a
minute. No configuration of the space takes more memory than there is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lsmtune.model.config import OptionValue
from lsmtune.study.build import parse_spec
from lsmtune.study.spec import Spec

KIB, MIB = 2**10, 2**20
METRIC = "sustained_throughput_ops_s"
Options = Mapping[str, OptionValue]
Key = tuple[str, str, int]  # case, tuner, seed
_TABLE = "block_based_table_factory"


@dataclass(frozen=True)
class Knob:
    """An option that is tuned: whole numbers of `unit` from `low` to `high`, or `choices`.

    On a machine that is larger by `Case.scale` the unit of an option that `scales` is, too.
    """

    name: str
    low: int = 0
    high: int = 0
    unit: int = 1
    log: bool = False
    choices: tuple[str, ...] = ()
    scales: bool = False


KNOBS = (
    Knob("write_buffer_size", 1, 8, MIB, log=True, scales=True),
    Knob("level0_file_num_compaction_trigger", 2, 12),
    Knob("max_bytes_for_level_base", 8, 128, MIB, log=True, scales=True),
    Knob("max_background_jobs", 1, 4),
    Knob(f"{_TABLE}.block_size", 1, 32, KIB, log=True),
    Knob(f"{_TABLE}.block_cache", 4, 96, MIB, log=True, scales=True),
    Knob(f"{_TABLE}.filter_policy", choices=("nullptr", "bloomfilter:10:false")),
    Knob(
        "compression",
        choices=("kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD"),
    ),
)
# RocksDB's defaults, but for sizes, which are those of a small machine.
BASELINE: Options = {
    "write_buffer_size": 4 * MIB,
    "level0_file_num_compaction_trigger": 4,
    "max_bytes_for_level_base": 16 * MIB,
    "max_background_jobs": 2,
    f"{_TABLE}.block_size": 4 * KIB,
    f"{_TABLE}.block_cache": 8 * MIB,
    f"{_TABLE}.filter_policy": "nullptr",
    "compression": "kSnappyCompression",
}
FIXED: Options = {"target_file_size_base": 4 * MIB}
MEMORY_BYTES = 256 * MIB
_SCALED = {*FIXED, *(knob.name for knob in KNOBS if knob.scales)}
_COUNTS = ("recordcount", "operationcount", "num")


@dataclass(frozen=True)
class Case:
    """A workload on a machine that is `scale` times the small one."""

    workload: str
    sizes: Mapping[str, int | float]
    scale: int = 1

    @property
    def burst(self) -> bool:
        """Whether runs are as long as stated, for everybody.

        Whether the baseline's are steady, `lsmtune bench` says. Else lsmtune may make the runs of
        its models as long as they have to be.
        """
        return self.scale == 1

    @property
    def deadline_s(self) -> int:
        """Of a run."""
        return 60 if self.scale == 1 else 300

    @property
    def memory(self) -> str:
        """What a run may take."""
        return f"{self.scale * MEMORY_BYTES}"

    @property
    def baseline(self) -> Options:
        """What the tuned options are worth before anybody tunes them."""
        return self._scaled(BASELINE)

    @property
    def baseline_name(self) -> str:
        """What the lines of the output call the baseline."""
        return name_of(self.baseline)

    @property
    def fixed(self) -> Options:
        """Options that nobody tunes."""
        return self._scaled(FIXED)

    def parameters(self, share: float = 1.0, operations: float = 1.0) -> dict[str, int | float]:
        """Those of the workload with `share` of its records.

        Args:
            operations: What is left of the operations for each record.

        Raises:
            ValueError: Nothing states how many operations there are, but for its records.
        """
        if operations != 1.0 and "operationcount" not in self.sizes:
            raise ValueError(f"{self.workload} has as many operations as records: no -short")
        shares = dict.fromkeys(_COUNTS, share) | {"operationcount": share * operations}
        return {
            name: max(100, round(value * shares[name])) if name in shares else value
            for name, value in self.sizes.items()
        }

    def to_options(self, values: Mapping[str, Any]) -> dict[str, OptionValue]:
        """The options of what a library proposes for the knobs."""
        return {
            k.name: values[k.name] if k.choices else int(values[k.name]) * self._unit(k)
            for k in KNOBS
        }

    def to_values(self, options: Options) -> dict[str, Any]:
        """What a library would have to propose for `options`."""
        return {
            k.name: options[k.name] if k.choices else int(options[k.name]) // self._unit(k)
            for k in KNOBS
        }

    def space(self) -> dict[str, object]:
        """As a study file states it."""
        space: dict[str, object] = {}
        for knob in KNOBS:
            unit = self._unit(knob)
            size = {"low": knob.low * unit, "high": knob.high * unit, "log": knob.log}
            number = {"type": "int", **size, "step": unit}
            space[knob.name] = (
                {"type": "categorical", "choices": list(knob.choices)} if knob.choices else number
            )
        return space

    def _unit(self, knob: Knob) -> int:
        return knob.unit * (self.scale if knob.scales else 1)

    def _scaled(self, options: Options) -> Options:
        return {k: self.scale * int(v) if k in _SCALED else v for k, v in options.items()}


CASES: Mapping[str, Case] = {
    "ycsb-a": Case(
        "ycsb-a", {"recordcount": 300_000, "operationcount": 150_000, "compression_ratio": 0.5}
    ),
    "overwrite": Case("overwrite", {"num": 400_000, "value_bytes": 400, "compression_ratio": 0.5}),
    # 1.2 GB in 1 GiB. Its runs write 1 GB, so that what they say is sustained.
    "ycsb-a-large": Case(
        "ycsb-a",
        {"recordcount": 1_200_000, "operationcount": 2_000_000, "compression_ratio": 0.5},
        scale=4,
    ),
    # The same data, all of it written once more: some 72 flushes of the baseline.
    "overwrite-large": Case(
        "overwrite", {"num": 1_200_000, "value_bytes": 1000, "compression_ratio": 0.5}, scale=4
    ),
}


RANDOM: Mapping[str, object] = {"name": "random"}


def study_spec(
    case: Case,
    share: float = 1.0,
    sampler: Mapping[str, object] = RANDOM,
    seed: int = 0,
    seconds: float = 60.0,
    *,
    models: bool = True,
) -> Spec:
    """The study as its user states it.

    - The budget is three times the seconds of the search, as lsmtune keeps up to half of it for the
      proof. The search is stopped when `seconds` are over, as by Ctrl-C, and nothing is proved.
    - Without `models` it has no budget of time: such a study searches the target.
    - There is no calibration, because it serves the proof alone. Anchors and repeats are part of
      the search, and its time.
    - There are no guards: the other tuners see nothing but the objective.
    """
    study = {
        "version": 1,
        "name": "against-tuners",
        "engine": {"name": "rocksdb"},
        "workload": {"name": case.workload, **case.parameters(share)},
        "objective": {"metric": METRIC},
        "baseline": dict(case.baseline),
        "options": dict(case.fixed),
        "space": case.space(),
        "sampler": dict(sampler),
        "noise": {"calibration": 0},
        "guards": [],
        "burst": case.burst,
        "limits": {"deadline": f"{case.deadline_s}s", "memory": case.memory, "disk": "20GiB"},
        "budget": {"time": f"{3 * seconds:.0f}s"} if models else {"trials": 10_000},
        "seed": seed,
    }
    return parse_spec(yaml.safe_dump(study, sort_keys=False), Path("study.yaml"))


# --- The lines of the output.


def name_of(options: Options) -> str:
    """A short name of a configuration, the same in all runs."""
    text = json.dumps({**FIXED, **options}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def key_of(line: Mapping[str, Any]) -> Key:
    """Whose line it is."""
    return line["workload"], line["tuner"], line["seed"]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All lines; one at the end that a kill cut off is removed from the file."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        path.write_text("".join(lines))
    return [json.loads(line) for line in lines]


def add_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Appends `lines` in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


@dataclass(frozen=True)
class Search:
    """A finished run of a tuner: what it would recommend from which second on."""

    key: Key
    seconds: float
    trials: int
    incumbents: Sequence[tuple[float, Options]]

    def at(self, seconds: float) -> Options:
        """What it recommends after so many seconds; the baseline before it knows anything."""
        known = [options for at_s, options in self.incumbents if at_s <= seconds]
        return known[-1] if known else CASES[self.key[0]].baseline


def searches(lines: Sequence[Mapping[str, Any]]) -> list[Search]:
    """The finished runs; what a run that was cut off left behind is not looked at."""
    found = []
    for end in (line for line in lines if line["kind"] == "run"):
        own = [x for x in lines if x.get("attempt") == end["attempt"] and key_of(x) == key_of(end)]
        told = [(x["at_s"], x["options"]) for x in own if x["kind"] == "incumbent"]
        trials = [x for x in own if x["kind"] == "trial" and x["at_s"] <= end["seconds"]]
        found.append(Search(key_of(end), end["seconds"], len(trials), told))
    return found
