"""NNI's experiment configuration (YAML), of version 1 (up to 1.9) and of version 2 (2.0 on).

Fields are those of NNI's `docs/en_US/Tutorial/ExperimentConfig.md` (v1.9) and
`docs/source/reference/experiment_config.rst` (v3.0). The space is in it, or in the file that it
names. The trial's command becomes the study's `runner`, unless an engine is asked for, or the space
holds options of one and the program does no more than call db_bench. lsmtune then measures the
engine itself, under the benchmark and with the options that a Python program states.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsmtune import plugins
from lsmtune.engines.formats.base import (
    ImportedStudy,
    ImportFormat,
    ImportRequest,
    Notes,
    json_document,
    yaml_document,
)
from lsmtune.engines.formats.db_bench import engine_of
from lsmtune.engines.formats.db_bench import read as read_flags
from lsmtune.engines.formats.nni_space import add_space
from lsmtune.engines.formats.space_builder import SpaceBuilder
from lsmtune.errors import InputError, nearest_name
from lsmtune.model.config import OptionValue
from lsmtune.model.files import Document, field_name
from lsmtune.model.text import is_file, read_text
from lsmtune.units import format_duration

METRIC = "value"  # what a program reports without a name (`lsmtune.trial.result(number)`)

# Builtin tuners and advisors (nni/runtime/default_config/builtin_algorithms.yml), lower case.
_TUNERS = {
    "tpe": "tpe",
    "tpe_legacy": "tpe",
    "random": "random",
    "gridsearch": "grid",
    "gp": "gp",
    "gptuner": "gp",
}
# Those that have no counterpart, and what comes nearest.
_NEAREST_TUNER = {
    "smac": "forest",
    "anneal": "tpe",
    "evolution": "nsga2",
    "regularizedevolutiontuner": "nsga2",
    "metis": "gp",
    "metistuner": "gp",
    "dngo": "gp",
    "dngotuner": "gp",
    "bohb": "tpe",
    "hyperband": "random",
    "pbt": "random",
    "pbttuner": "random",
}
_ADDED_SAMPLERS: plugins.Plugins[object] = plugins.Plugins(plugins.SAMPLERS, {})
# The fields of version 1 and of version 2.
_TRIALS = ("maxTrialNum", "maxTrialNumber")
_TIME = ("maxExecDuration", "maxExperimentDuration")
_SPACE_FILE = ("searchSpacePath", "searchSpaceFile")
_SIGNS = ("trialConcurrency", "tuner", "advisor", "trial", "trialCommand")
# Values of these change nothing here, and are not worth a word.
_WITHOUT_EFFECT: Mapping[str, tuple[object, ...]] = {
    "useAnnotation": (False,),
    "trialConcurrency": (1,),
    "trialGpuNumber": (0,),
    "trainingServicePlatform": ("local",),
    "trainingService": ({}, {"platform": "local"}),
    "debug": (False,),
    "multiThread": (False,),
    "multiPhase": (False,),
}
_PLACES = ("trainingServicePlatform", "trainingService", "machineList")
# nni/algorithms/hpo/tpe_tuner.py, TpeArguments.
_TPE_ARGUMENTS = {"n_startup_jobs": "startup_trials", "n_ei_candidates": "candidates"}
_DURATION = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,9})?)\s*(?P<unit>[smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SHELL_WORDS = re.compile(r"[A-Za-z0-9_./=:,@%+ -]+")
_NOTHING_LIKE_IT = "left out: lsmtune has nothing of the kind"
_NNI_ARGUMENT = "left out: an argument of NNI's implementation"


# --- what the program of an NNI trial gives to db_bench
#
# NNI's example for RocksDB (`examples/trials/systems/rocksdb-fillrandom/main.py`, up to v2) and its
# copies call db_bench with a dictionary of flags, over which they put the parameters of the trial.
# Such a program is read, never run.

_PROGRAM = re.compile(r".*\.(py|sh|bash)")
_CALLED = "db_bench"
_BENCHMARK = "benchmarks"
# Flags of db_bench, and the parameters of a workload that mean the same.
_WORKLOAD_FLAGS = {
    "num": "num",
    "reads": "reads",
    "threads": "threads",
    "duration": "duration_s",
    "key_size": "key_bytes",
    "value_size": "value_bytes",
    "compression_ratio": "compression_ratio",
}
# What db_bench has for these where nothing is said.
_UNSAID = (("reads", -1), ("duration", 0))
_DURABILITY_FLAGS = {"disable_wal": "none", "sync": "sync"}
# Where the database lies, and what is printed: not worth a note.
_FLAGS_WITHOUT_EFFECT = frozenset(
    {"db", "histogram", "statistics", "stats_interval", "progress_reports"}
)


@dataclass(frozen=True)
class Programs:
    """The programs that a command names: the text of each, and the names of those `missing`."""

    texts: Mapping[Path, str]
    missing: tuple[str, ...]

    @property
    def only_call_db_bench(self) -> bool:
        """Whether the native workload can stand in: one calls db_bench, or cannot start at all."""
        return bool(self.missing) or any(_CALLED in text for text in self.texts.values())

    def benchmark(
        self, engine: str
    ) -> tuple[dict[str, Any], Mapping[str, OptionValue], tuple[str, ...]]:
        """Fields of a workload, options of `engine`, and notes; all empty where nothing is said."""
        for path, text in self.texts.items():
            flags, computed = _flags(text) if _CALLED in text else ({}, ())
            if not flags:
                continue
            unread = Notes(str(path))
            for name in computed:
                why = "left out: its value is computed, and the program is not run"
                unread.add(None, name, why)
            flags = {n: v for n, v in flags.items() if (n, v) not in _UNSAID}
            workload: dict[str, Any] = {"name": flags.pop(_BENCHMARK)}
            for flag, parameter in _WORKLOAD_FLAGS.items():
                if flag in flags:
                    workload[parameter] = flags.pop(flag)
            for flag, durability in _DURABILITY_FLAGS.items():
                if flags.pop(flag, 0) in (1, True, "1", "true"):
                    workload["durability"] = durability
            words = [f"--{n}={v}" for n, v in flags.items() if n not in _FLAGS_WITHOUT_EFFECT]
            if not words:
                return workload, {}, unread.taken()
            config = read_flags(ImportRequest(shlex.join(words), path, engine))
            # Line 1 is that of the flags put together, and not of the program.
            notes = tuple(note.replace(f"{path}:1:", f"{path}:", 1) for note in config.notes)
            return workload, config.options, notes + unread.taken()
        return {}, {}, ()


def programs_of(command: str, folder: Path) -> Programs:
    """The Python and shell programs that `command` names, relative to `folder`."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    paths = [folder / word for word in words if _PROGRAM.fullmatch(word)]
    there = [path for path in paths if is_file(path)]
    missing = tuple(path.name for path in paths if path not in there)
    return Programs({path: _text_of(path) for path in there}, missing)


def _text_of(path: Path) -> str:
    """The text of a program; empty for one that is no text in UTF-8, which stays the trial."""
    try:
        return read_text(path, "a program")
    except InputError:
        return ""


def _flags(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The first dictionary of a Python program that says `benchmarks`: its plain values.

    And the names of those that matter and are computed.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of the program's own, such as "\\d"
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}, ()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        plain: dict[str, Any] = {}
        computed: list[str] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                continue
            literal = _plain(value)
            if literal is not None:
                plain[key.value] = literal
            elif key.value not in _FLAGS_WITHOUT_EFFECT:
                computed.append(key.value)
        if isinstance(plain.get(_BENCHMARK), str):
            return plain, tuple(computed)
    return {}, ()


def _plain(value: ast.expr) -> OptionValue | None:
    """The text, number or truth that a program states; None for what it computes."""
    try:
        literal = ast.literal_eval(value)  # a number below 0 is no constant
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return literal if isinstance(literal, str | int | float | bool) else None


# --- the experiment


@dataclass
class _Reading:
    document: Document
    notes: Notes
    request: ImportRequest
    taken: set[str] = field(default_factory=set)
    study: dict[str, Any] = field(default_factory=dict)
    notes_of_files: list[str] = field(default_factory=list)  # on the files that it names

    def get(self, *names: str) -> tuple[str, Any]:
        """The first of the fields `names` that is there, and its value; ("", None) without one."""
        self.taken.update(names)
        for name in names:
            if self.document.data.get(name) is not None:
                return name, self.document.data[name]
        return "", None

    def note(self, path: tuple[str | int, ...], text: str) -> None:
        self.notes.add(self.document.line(*path), field_name(*path), text)


def recognises(text: str) -> bool:
    """Whether `text` has the top-level fields of an experiment in YAML."""
    names = {line.partition(":")[0] for line in text.splitlines() if ":" in line}
    return len(names & set(_SIGNS)) >= 2 and "space" not in names


def read(request: ImportRequest) -> ImportedStudy:
    """The experiment as a study. Raises InputError for what NNI would refuse, too."""
    reading = _Reading(yaml_document(request.text, request.source), Notes(request.source), request)
    name, value = reading.get("experimentName")
    if name:
        # A study's name begins with a letter or a digit.
        plain = re.sub(r"[^A-Za-z0-9 ._-]", "_", str(value)).lstrip(" ._-")[:100]
        reading.study |= {"name": plain} if plain else {}
    _add_space(reading)
    _add_runner(reading)
    _add_sampler_and_objective(reading)
    _add_pruner(reading)
    _add_budget(reading)
    _note_what_is_left(reading)
    return ImportedStudy(reading.study, (*reading.notes.taken(), *reading.notes_of_files))


def _add_space(reading: _Reading) -> None:
    """Adds the space, which is in the document or in a file that it names."""
    request, document = reading.request, reading.document
    name, inline = reading.get("searchSpace")
    file_field, file = reading.get(*_SPACE_FILE)
    if document.data.get("useAnnotation") is True:
        why = "the search space is in annotations of the trial's code, which cannot be read here"
        raise document.error(("useAnnotation",), why=why, allowed="false, and a space")
    if name and isinstance(inline, dict):
        builder = SpaceBuilder(document, reading.notes, request.engine)
        add_space(builder, inline, (name,))
        reading.study |= builder.fields()
        return
    if not isinstance(file, str):
        allowed = " or ".join([*_SPACE_FILE, "searchSpace"])
        raise document.error((file_field or "searchSpace",), found=file, allowed=allowed)
    path = request.path.parent / file
    try:
        text = read_text(path, "a search space")
    except InputError as error:
        raise document.error((file_field,), found=file, why=f"{error.why}: {path}") from None
    is_json = text.lstrip().startswith(("{", "/"))
    inner = (json_document if is_json else yaml_document)(text, str(path))
    builder = SpaceBuilder(inner, Notes(str(path)), request.engine)
    add_space(builder, inner.data, ())
    reading.study |= builder.fields()
    reading.notes_of_files += builder.notes.taken()


def _add_runner(reading: _Reading) -> None:
    """The trial's command as the study's runner, or what its program makes an engine do."""
    request = reading.request
    trial_field, trial = reading.get("trial")
    new_field, command = reading.get("trialCommand")
    _, folder = reading.get("trialCodeDirectory")
    if trial_field and not isinstance(trial, dict):
        raise reading.document.error(("trial",), found=trial, allowed="a mapping with command")
    place: tuple[str, ...] = (new_field,) if new_field else ("trial", "command")
    if not new_field:
        command, folder = (trial or {}).get("command"), (trial or {}).get("codeDir")
    for name, value in (trial or {}).items():
        if name not in ("command", "codeDir") and value not in (0, None):
            reading.note(("trial", name), _NOTHING_LIKE_IT)
    if command is None and request.engine is not None:
        return
    if not isinstance(command, str) or not command.strip():
        raise reading.document.error(place, found=command, allowed="a command")
    folder = folder if isinstance(folder, str) else ""
    programs = programs_of(command, request.path.parent / folder)
    names = [*reading.study["space"], *reading.study.get("options", {})]
    if request.engine is not None:
        _add_benchmark(reading, place, programs, request.engine)
    elif not (programs.only_call_db_bench and engine_of(names)):
        _add_command(reading, place, command, folder)
        for missing in programs.missing:
            reading.note(place, f"{missing} is not there, and no trial can run without it")


def _add_benchmark(
    reading: _Reading, place: tuple[str, ...], programs: Programs, engine: str
) -> None:
    """Workload and options that the program gives to db_bench, whose part lsmtune takes."""
    text = f"left out: lsmtune itself measures {engine}; to run the program, give --command"
    reading.note(place, text)
    workload, options, notes = programs.benchmark(engine)
    study = reading.study
    if not workload:
        text = "what the program sets beside the space could not be read: it belongs under options"
        reading.note(place, text)
        return
    study["workload"] = workload
    for name, value in options.items():
        if name in study["space"]:
            study.setdefault("baseline", {})[name] = value
        elif name not in study.get("options", {}):
            study.setdefault("options", {})[name] = value
    reading.notes_of_files += notes


def _add_command(reading: _Reading, place: tuple[str, ...], command: str, folder: str) -> None:
    """The command as the study's runner."""
    is_elsewhere = folder not in ("", ".", "./")
    if is_elsewhere or not _SHELL_WORDS.fullmatch(command):
        # By way of bash, as in NNI. A brace begins a placeholder in a study file.
        whole = f"cd {shlex.quote(folder)} && {command}" if is_elsewhere else command
        words = ["bash", "-c", whole.replace("{", "{{").replace("}", "}}")]
    else:
        words = shlex.split(command)
    reading.study["runner"] = {"command": words}
    reading.note(place, "starts in the study file's folder: keep the file beside this one")
    text = (
        "in the program, lsmtune.trial.parameters() takes the place of nni.get_next_parameter(), "
        "and lsmtune.trial.report and .result those of report_intermediate_ and report_final_result"
    )
    reading.note(place, text)


def _add_sampler_and_objective(reading: _Reading) -> None:
    """Sampler, direction of the objective, seed."""
    tuner_field, tuner = reading.get("advisor", "tuner")
    place = (tuner_field, "classArgs", "optimize_mode")
    direction = "maximize"  # NNI's default
    if tuner_field:
        if not isinstance(tuner, dict):
            allowed = "a mapping with the name of a builtin one"
            raise reading.document.error((tuner_field,), found=tuner, allowed=allowed)
        arguments = tuner.get("classArgs") or {}
        if not isinstance(arguments, dict):
            raise reading.document.error(place[:2], found=arguments, allowed="a mapping")
        direction = arguments.get("optimize_mode", direction)
        if direction not in ("maximize", "minimize"):
            raise reading.document.error(place, found=direction, allowed="maximize, minimize")
        _add_sampler(reading, tuner_field, tuner, arguments)
    if reading.request.engine is None:
        reading.study["objective"] = {"metric": METRIC, "direction": direction}
    elif direction == "minimize":
        text = "left out: of its own metric lsmtune knows the direction; set objective to another"
        reading.note(place, text)


def _add_sampler(
    reading: _Reading, tuner_field: str, tuner: Mapping[str, Any], arguments: Mapping[str, Any]
) -> None:
    name_field = "name" if "name" in tuner else f"builtin{tuner_field.capitalize()}Name"
    sampler = _sampler_name(reading, tuner.get(name_field), (tuner_field, name_field))
    settings: dict[str, Any] = {"name": sampler} if sampler else {}
    for argument, value in arguments.items():
        here = (tuner_field, "classArgs", argument)
        if argument == "seed" and type(value) is int:
            reading.study["seed"] = value
        elif argument == "tpe_args" and isinstance(value, dict) and sampler == "tpe":
            for name, number in value.items():
                if name in _TPE_ARGUMENTS and type(number) is int and number >= 1:
                    settings[_TPE_ARGUMENTS[name]] = number
                else:
                    reading.note((*here, name), _NNI_ARGUMENT)
        elif argument != "optimize_mode" and value is not None:
            reading.note(here, _NNI_ARGUMENT)
    for name in tuner:
        if name not in (name_field, "classArgs") and tuner[name] is not None:
            reading.note((tuner_field, name), _NOTHING_LIKE_IT)
    if settings:
        reading.study["sampler"] = settings


def _sampler_name(reading: _Reading, name: object, place: tuple[str, ...]) -> str:
    """The sampler, said where it is another; '' where none comes near."""
    key = str(name).lower()
    if key in _TUNERS:
        return _TUNERS[key]
    if key in _ADDED_SAMPLERS:  # one of a package that bears the tuner's name
        return key
    near = _NEAREST_TUNER.get(key, "")
    if near:
        reading.note(place, f"{name} is not here; {near} comes nearest")
        return near
    closest = nearest_name(key, [*_TUNERS, *_NEAREST_TUNER])
    hint = f"; like {closest}" if closest else ""
    reading.note(place, f"left out: {name} is not here{hint}")
    return ""


def _add_pruner(reading: _Reading) -> None:
    """Adds the pruner. NNI's Medianstop is the median stopping rule of Golovin et al. 2017."""
    name, assessor = reading.get("assessor")
    if not name:
        return
    if not isinstance(assessor, dict):
        raise reading.document.error((name,), found=assessor, allowed="a mapping with a name")
    algorithm = assessor.get("name", assessor.get("builtinAssessorName"))
    if str(algorithm).lower() != "medianstop":
        reading.note((name,), f"left out: no pruner here does what {algorithm} does")
        return
    pruner: dict[str, Any] = {"name": "median"}
    arguments = assessor.get("classArgs") or {}
    if not isinstance(arguments, dict):
        place = (name, "classArgs")
        raise reading.document.error(place, found=arguments, allowed="a mapping")
    for argument, value in arguments.items():
        if argument == "start_step" and isinstance(value, int) and value >= 0:
            pruner["warmup_steps"] = value
        elif argument != "optimize_mode":
            reading.note((name, "classArgs", argument), _NNI_ARGUMENT)
    reading.study["pruner"] = pruner
    text = "median compares values at the same step; NNI takes the others' running means"
    reading.note((name,), text)


def _add_budget(reading: _Reading) -> None:
    budget: dict[str, Any] = {}
    name, time = reading.get(*_TIME)
    if name:
        budget["time"] = _duration(reading, name, time)
    name, trials = reading.get(*_TRIALS)
    if name:
        if type(trials) is not int or trials < 1:
            raise reading.document.error((name,), found=trials, allowed="a whole number from 1")
        budget["trials"] = trials
    if budget:
        reading.study["budget"] = budget
    name, limit = reading.get("maxTrialDuration")
    if name:
        reading.study["limits"] = {"deadline": _duration(reading, name, limit)}


def _duration(reading: _Reading, name: str, value: object) -> str:
    if type(value) is int and value > 0 and name != _TIME[0]:
        return format_duration(value)  # of version 2: `parse_time` in nni/experiment/config/utils
    match = _DURATION.fullmatch(str(value).strip())
    if match is None or float(match["number"]) == 0:
        raise reading.document.error((name,), found=value, allowed="a number and s, m, h or d: 12h")
    return format_duration(float(match["number"]) * _SECONDS[match["unit"]])


def _note_what_is_left(reading: _Reading) -> None:
    """Says which fields have no counterpart."""
    for name, value in reading.document.data.items():
        if name in (*reading.taken, "authorName"):
            continue
        text = _NOTHING_LIKE_IT
        if name == "trialConcurrency":
            text = f"left out: one trial runs at a time, not {value}"
        elif name in _PLACES:
            text = "left out: trials run on this machine"
        if value not in (None, *_WITHOUT_EFFECT.get(name, ())):
            reading.note((name,), text)


FORMAT = ImportFormat("nni-config", "an experiment's configuration of NNI", recognises, read)
