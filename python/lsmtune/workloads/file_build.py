"""How many records a phase leaves behind, as far as its statement tells."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from lsmtune.errors import InputError
from lsmtune.model.workload import (
    Companion,
    Distribution,
    Durability,
    KeyOrder,
    Mix,
    PageCache,
    Phase,
    PhaseKind,
    Replay,
    SineRate,
    StepRate,
    Workload,
    YcsbKeys,
)
from lsmtune.units import UnitError, parse_duration
from lsmtune.workloads.distributions import (
    key_distribution,
    largest_size,
    mean_size,
    size_distribution,
)
from lsmtune.workloads.file_models import (
    STEPS_ALLOWED,
    CompanionModel,
    KeysModel,
    MixModel,
    PhaseModel,
    RateModel,
    WorkloadFileModel,
)
from lsmtune.workloads.parameter import KEY_BYTES_MIN, RATE_MAX, VALUE_BYTES_MAX

_FILLS = frozenset({"fillseq", "filluniquerandom"})
_CHANGE_NUMBERS = frozenset({"insert", "delete_oldest"})


def records_after(phase: Phase, num: int, before: int | None) -> int | None:
    """Records that exist after `phase`, numbered from 0 on; None where that is left to chance.

    `before` are those that exist when it begins. Keys that are chosen at random may be put or
    deleted: they count as there, as the driver's choosers count them.
    """
    if phase.kind is PhaseKind.SETTLE or phase.replay is not None:
        return before
    mixes = [c.mix for c in phase.companions if c.mix is not None]
    if any(_CHANGE_NUMBERS & {name for name, _ in mix.operations} for mix in mixes):
        return None
    if phase.mix is not None:
        return _after_mix(phase.mix, phase)
    if phase.operation in _FILLS:
        done = phase.operations_whole
        return num if done is not None and done >= num else None
    # Written at random: most keys are there, and readers of all of them expect to miss some.
    return num if phase.operation == "fillrandom" else before


def _after_mix(mix: Mix, phase: Phase) -> int | None:
    names = {name for name, _ in mix.operations}
    if not names & _CHANGE_NUMBERS:
        return mix.first + mix.records if mix.first == 0 else None
    alone = names == {"insert"} and phase.duration_s is None and mix.insert_from is None
    if not alone or phase.operations_whole is None or mix.first:
        return None
    return mix.records + phase.operations_whole


# ----------
# From the model of a rate that changes with time to its record.

_OF_SINE = ("mean_ops_s", "amplitude_ops_s", "period_s", "offset_s")


def make_rate(phase: PhaseModel, source: str, field: str) -> SineRate | StepRate | None:
    """The rate of `phase`, which lies at `field`. Raises InputError for parts that do not fit."""
    model = phase.rate
    if model is None:
        return None
    place = f"{field}.rate"
    foreign = ("steps",) if model.shape == "sine" else _OF_SINE
    for name in foreign:
        if getattr(model, name) is not None:
            why = f"has no effect with shape {model.shape}"
            raise InputError(source, f"{place}.{name}", why=why)
    return _sine(model, source, place) if model.shape == "sine" else _steps(model, source, place)


def _sine(model: RateModel, source: str, place: str) -> SineRate:
    stated = {name: getattr(model, name) for name in _OF_SINE[:3]}
    for name, value in stated.items():
        if value is None:
            raise InputError(source, f"{place}.{name}", why="missing", allowed="a number above 0")
    if stated["amplitude_ops_s"] > stated["mean_ops_s"]:
        found = stated["amplitude_ops_s"]
        allowed = f"at most mean_ops_s, {stated['mean_ops_s']:g}"
        raise InputError(source, f"{place}.amplitude_ops_s", found=found, allowed=allowed)
    return SineRate(**stated, offset_s=model.offset_s or 0.0)


def _steps(model: RateModel, source: str, place: str) -> StepRate:
    if not model.steps:
        raise InputError(source, f"{place}.steps", why="missing", allowed=STEPS_ALLOWED)
    steps = tuple(
        _step(step, source, f"{place}.steps[{index}]") for index, step in enumerate(model.steps)
    )
    if all(rate == 0 for _, rate in steps):
        allowed = "one step at least with a rate above 0"
        raise InputError(source, f"{place}.steps", why="never does anything", allowed=allowed)
    return StepRate(steps)


def _step(step: list[object], source: str, place: str) -> tuple[float, float]:
    if len(step) != 2:
        raise InputError(source, place, found=step, allowed=STEPS_ALLOWED)
    time, rate = step
    try:
        duration_s = parse_duration(time)
    except UnitError as error:
        raise InputError(source, place, found=time, allowed=error.allowed) from None
    if duration_s <= 0:
        raise InputError(source, place, found=time, allowed="a time above 0")
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= RATE_MAX:
        raise InputError(source, place, found=rate, allowed=f"a rate from 0 to {RATE_MAX:.0f}")
    return duration_s, float(rate)


# ----------
# From the model of a workload file to a Workload: the checks that span several fields.

KEY_BYTES_DEFAULT = 16
VALUE_BYTES_DEFAULT = 100
_HASH_DIGITS = 19
# Operations that choose a key among those that exist.
_CHOOSE = frozenset({"get", "put", "update", "read_modify_write", "scan", "delete", "merge"})
_SIZES_OF_A_PHASE = ("operations", "operations_per_thread", "duration_s")
_SETTLE_HAS_NO = (
    *("operation", "mix", "replay", *_SIZES_OF_A_PHASE),
    *("rate_ops_s", "rate", "companions", "seek_nexts"),
)
_ONLY_WAITS = "has no effect: a settle phase only waits"
_WAYS_BESIDE = ("operation", "mix")
# Operations that write a value of a size that is drawn.
_WRITE = frozenset({"put", "insert", "update", "read_modify_write", "merge"})


def build_workload(model: WorkloadFileModel, source: str, folder: Path) -> Workload:
    """The Workload that `model` states; paths are from `folder`.

    Raises `InputError` with a bare `source` and a dotted field.
    """
    builder = _Builder(model, source, folder)
    phases = builder.phases()
    key_sizes = _key_sizes(model, source)
    return Workload(
        name=model.name,
        phases=phases,
        num=model.num,
        key_bytes=_key_bytes(model, key_sizes, source),
        value_bytes=_value_bytes(model, phases),
        compression_ratio=model.compression_ratio,
        durability=Durability(model.durability),
        page_cache=PageCache(model.page_cache),
        keys=None if model.keys is None else _keys(model.keys),
        key_sizes=key_sizes,
        databases=model.databases,
        column_families=model.column_families,
    )


class _Builder:
    """Makes the phases in order, and keeps count of the records that the next one finds."""

    def __init__(self, model: WorkloadFileModel, source: str, folder: Path) -> None:
        self._model = model
        self._source = source
        self._folder = folder
        self._records: int | None = 0

    def phases(self) -> tuple[Phase, ...]:
        made: list[Phase] = []
        for index, model in enumerate(self._model.phases):
            field = f"phases[{index}]"
            if model.name in [phase.name for phase in made]:
                self._refuse(f"{field}.name", found=model.name, why="the same name twice")
            made.append(self._phase(model, field))
            self._records = records_after(made[-1], self._model.num, self._records)
        if all(phase.kind is not PhaseKind.MEASURE for phase in made):
            self._refuse("phases", why="none of them is measured", allowed="one of kind measure")
        return tuple(made)

    def _phase(self, model: PhaseModel, field: str) -> Phase:
        kind = PhaseKind(model.kind)
        if kind is PhaseKind.SETTLE:
            for name in _SETTLE_HAS_NO:
                if getattr(model, name):
                    self._refuse(f"{field}.{name}", why=_ONLY_WAITS)
            if model.threads != 1:
                self._refuse(f"{field}.threads", found=model.threads, why=_ONLY_WAITS)
            return Phase(model.name, kind)
        self._check_doing(model, field)
        self._check_size(model, field)
        return Phase(
            name=model.name,
            kind=kind,
            operation=model.operation,
            operations_per_thread=model.operations_per_thread,
            duration_s=model.duration_s,
            threads=model.threads,
            rate_ops_s=model.rate_ops_s,
            seek_nexts=model.seek_nexts,
            mix=None if model.mix is None else self._mix(model.mix, f"{field}.mix"),
            replay=None if model.replay is None else self._replay(model, field),
            operations=model.operations,
            rate=None if model.rate is None else make_rate(model, self._source, field),
            companions=self._companions(model, field),
        )

    def _check_doing(self, model: PhaseModel | CompanionModel, field: str) -> None:
        ways = ("operation", "mix", "replay") if isinstance(model, PhaseModel) else _WAYS_BESIDE
        stated = [name for name in ways if getattr(model, name) is not None]
        if not stated:
            self._refuse(field, why="does nothing", allowed=f"one of {', '.join(ways)}")
        if len(stated) > 1:
            why = f"stands beside {stated[0]}"
            self._refuse(f"{field}.{stated[1]}", why=why, allowed="one of them")
        if isinstance(model, PhaseModel) and model.seek_nexts and model.operation != "seekrandom":
            self._refuse(f"{field}.seek_nexts", why="has no effect without operation: seekrandom")

    def _check_size(self, model: PhaseModel, field: str) -> None:
        if model.operations is not None and model.operations_per_thread is not None:
            why = "stands beside operations"
            self._refuse(f"{field}.operations_per_thread", why=why, allowed="one of them")
        sized = any(getattr(model, name) is not None for name in _SIZES_OF_A_PHASE)
        if not sized and model.replay is None:
            self._refuse(field, why="has no size", allowed=f"one of {', '.join(_SIZES_OF_A_PHASE)}")
        if model.rate is not None and model.rate_ops_s is not None:
            why = "stands beside rate_ops_s"
            self._refuse(f"{field}.rate", why=why, allowed="one of them")

    def _mix(self, model: MixModel, field: str) -> Mix:
        operations = tuple(model.operations.items())
        for name, weight in operations:
            if not 0 < weight < float("inf"):
                place = f"{field}.operations.{name}"
                self._refuse(place, found=weight, allowed="a weight above 0")
        names = {name for name, _ in operations}
        records = self._records if model.records is None else model.records
        if records is None:
            why = "missing, and how many the phases before leave is not known"
            self._refuse(f"{field}.records", why=why, allowed="a number of keys")
        if not records and names & _CHOOSE and "insert" not in names:
            why = f"is 0, and {min(names & _CHOOSE)} needs a key"
            self._refuse(f"{field}.records", why=why, allowed="a load before it, or more than 0")
        self._check_used(model, names, field)
        if ("scan" in names) != (model.scan_lengths is not None):
            why = "missing" if "scan" in names else "has no effect without scan"
            self._refuse(f"{field}.scan_lengths", why=why, allowed="entries of a scan, beside scan")
        if model.insert_from is not None and "insert" not in names:
            self._refuse(f"{field}.insert_from", why="has no effect without insert")
        if model.operation_by_key is not None and not names <= _CHOOSE:
            why = f"stands beside {min(names - _CHOOSE)}, which takes no key that was drawn"
            self._refuse(f"{field}.operation_by_key", why=why)
        return Mix(
            operations=operations,
            records=records,
            keys=key_distribution(model.keys, self._source, f"{field}.keys"),
            first=model.first,
            insert_from=model.insert_from,
            scan_lengths=self._sizes(model.scan_lengths, f"{field}.scan_lengths"),
            value_sizes=self._values(model, field),
            operation_by_key=model.operation_by_key,
        )

    def _check_used(self, model: MixModel, names: set[str], field: str) -> None:
        """Distributions that none of the operations `names` draws from."""
        keys = key_distribution(model.keys, self._source, f"{field}.keys")
        if keys != Distribution("uniform") and not names & _CHOOSE:
            self._refuse(f"{field}.keys", why=f"has no effect: {', '.join(names)} draws no key")
        if model.value_sizes is not None and not names & _WRITE:
            why = f"has no effect: {', '.join(names)} writes no value"
            self._refuse(f"{field}.value_sizes", why=why)

    def _sizes(self, stated: object, field: str) -> Distribution | None:
        return None if stated is None else size_distribution(stated, self._source, field)

    def _values(self, model: MixModel, field: str) -> Distribution | None:
        sizes = self._sizes(model.value_sizes, f"{field}.value_sizes")
        if sizes is not None and largest_size(sizes) > VALUE_BYTES_MAX:
            place, found = f"{field}.value_sizes", largest_size(sizes)
            self._refuse(place, found=found, allowed=f"values of at most {VALUE_BYTES_MAX} bytes")
        return sizes

    def _replay(self, model: PhaseModel, field: str) -> Replay | None:
        if model.replay is None:
            return None
        if model.rate is not None or model.rate_ops_s is not None:
            place = f"{field}.{'rate' if model.rate is not None else 'rate_ops_s'}"
            self._refuse(place, why="has no effect: a trace has its own pace", allowed="speed")
        path = self._folder / Path(model.replay.path)
        return Replay(str(path), model.replay.speed)

    def _companions(self, model: PhaseModel, field: str) -> tuple[Companion, ...]:
        made: list[Companion] = []
        for index, companion in enumerate(model.companions):
            place = f"{field}.companions[{index}]"
            self._check_doing(companion, place)
            if companion.name in [other.name for other in made]:
                self._refuse(f"{place}.name", found=companion.name, why="the same name twice")
            mix = companion.mix
            made.append(
                Companion(
                    name=companion.name,
                    operation=companion.operation,
                    mix=None if mix is None else self._mix(mix, f"{place}.mix"),
                    threads=companion.threads,
                    rate_ops_s=companion.rate_ops_s,
                )
            )
        return tuple(made)

    def _refuse(
        self, field: str, *, found: object = None, why: str = "", allowed: str = ""
    ) -> NoReturn:
        raise InputError(self._source, field, found=found, why=why, allowed=allowed)


def _keys(model: KeysModel) -> YcsbKeys:
    return YcsbKeys(model.prefix, model.zero_padding, KeyOrder(model.order))


def _key_sizes(model: WorkloadFileModel, source: str) -> Distribution | None:
    if model.key_sizes is None:
        return None
    if model.keys is not None:
        raise InputError(source, "key_sizes", why="has no effect: keys have their own length")
    return size_distribution(model.key_sizes, source, "key_sizes")


def _key_bytes(model: WorkloadFileModel, sizes: Distribution | None, source: str) -> int:
    """The length of a key: the one that most have with `keys`, the largest with `key_sizes`."""
    if model.keys is not None:
        if model.key_bytes is not None:
            why = "has no effect: keys have their own length"
            raise InputError(source, "key_bytes", found=model.key_bytes, why=why)
        digits = len(str(model.num)) if model.keys.order == KeyOrder.ORDERED.value else _HASH_DIGITS
        return len(model.keys.prefix.encode()) + max(digits, model.keys.zero_padding)
    found = model.key_bytes
    largest = KEY_BYTES_DEFAULT if sizes is None else largest_size(sizes)
    key_bytes = largest if found is None else found
    if key_bytes < KEY_BYTES_MIN or (sizes is not None and key_bytes < largest):
        field = "key_bytes" if found is not None else "key_sizes"
        least = max(KEY_BYTES_MIN, largest if sizes is not None else 0)
        raise InputError(source, field, found=key_bytes, allowed=f"at least {least} bytes")
    return key_bytes


def _value_bytes(model: WorkloadFileModel, phases: tuple[Phase, ...]) -> int:
    """As stated; otherwise the mean of the first sizes that a mix states."""
    if model.value_bytes is not None:
        return model.value_bytes
    stated = [p.mix.value_sizes for p in phases if p.mix is not None and p.mix.value_sizes]
    return round(mean_size(stated[0])) if stated else VALUE_BYTES_DEFAULT
