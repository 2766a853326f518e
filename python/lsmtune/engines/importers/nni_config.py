"""NNI's experiment configuration (YAML), of version 1 (up to 1.9) and of version 2 (2.0 on).

Fields are those of NNI's `docs/en_US/Tutorial/ExperimentConfig.md` (v1.9) and
`docs/source/reference/experiment_config.rst` (v3.0). The space is in it, or in the file that it
names. The trial's command becomes the study's `runner`, unless an engine is asked for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsmtune.engines.importers.base import (
    Document,
    ImportedStudy,
    ImportFormat,
    ImportRequest,
    Notes,
    field_name,
    json_document,
    read_text,
    yaml_document,
)
from lsmtune.engines.importers.nni_space import add_space
from lsmtune.engines.importers.space_builder import SpaceBuilder
from lsmtune.errors import nearest_name
from lsmtune.model.setting import SAMPLER_NAMES
from lsmtune.units import format_duration

NAME = "nni-config"
METRIC = "value"  # what a program reports without a name (`lsmtune.trial.result(number)`)

# Builtin tuners and advisors (nni/runtime/default_config/builtin_algorithms.yml), lower case.
_TUNERS = {
    "tpe": "tpe",
    "tpe_legacy": "tpe",
    "random": "random",
    "gridsearch": "grid",
    "smac": "smac",
    "gp": "gp",
    "gptuner": "gp",
}
# Those that have no counterpart, and what comes nearest.
_NEAREST_TUNER = {
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
_OLD_OR_NEW = {
    "trials": ("maxTrialNum", "maxTrialNumber"),
    "time": ("maxExecDuration", "maxExperimentDuration"),
    "space_file": ("searchSpacePath", "searchSpaceFile"),
}
_SIGNS = ("trialConcurrency", "tuner", "advisor", "trial", "trialCommand")
# Values of these change nothing here, and are not worth a word.
_WITHOUT_EFFECT: Mapping[str, object] = {
    "authorName": None,
    "useAnnotation": False,
    "trialConcurrency": 1,
    "trialGpuNumber": 0,
    "trainingServicePlatform": "local",
    "debug": False,
    "multiThread": False,
    "multiPhase": False,
}
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NAME = re.compile(r"[^A-Za-z0-9 ._-]")
_SHELL_WORDS = re.compile(r"[A-Za-z0-9_./=:,@%+ -]+")
_PARAMETERS = "nni.get_next_parameter"


@dataclass
class _Reading:
    document: Document
    notes: Notes
    request: ImportRequest
    taken: set[str] = field(default_factory=set)
    study: dict[str, Any] = field(default_factory=dict)

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
    """Whether it has the top-level fields of an experiment in YAML."""
    names = {line.partition(":")[0] for line in text.splitlines() if ":" in line}
    return len(names & set(_SIGNS)) >= 2 and "space" not in names


def read(request: ImportRequest) -> ImportedStudy:
    """The experiment as a study. Raises InputError for what NNI would refuse, too."""
    reading = _Reading(yaml_document(request.text, request.source), Notes(request.source), request)
    name, value = reading.get("experimentName")
    if name:
        # A study's name begins with a letter or a digit.
        plain = _NAME.sub("_", str(value)).lstrip(" ._-")[:100]
        reading.study |= {"name": plain} if plain else {}
    inner = _space(reading)
    _runner(reading)
    _tuner(reading)
    _assessor(reading)
    _budget(reading)
    _others(reading)
    return ImportedStudy(reading.study, reading.notes.taken() + inner)


def _space(reading: _Reading) -> tuple[str, ...]:
    """Adds the space; the notes on the file that it is in."""
    request = reading.request
    name, inline = reading.get("searchSpace")
    file_field, file = reading.get(*_OLD_OR_NEW["space_file"])
    if reading.document.data.get("useAnnotation") is True:
        why = "the search space is in annotations of the trial's code, which cannot be read here"
        raise reading.document.error(("useAnnotation",), why=why, allowed="false, and a space")
    if name and isinstance(inline, dict):
        builder = SpaceBuilder(reading.document, reading.notes, request.engine)
        add_space(builder, inline, (name,))
        reading.study |= builder.fields()
        return ()
    if not isinstance(file, str):
        allowed = " or ".join([*_OLD_OR_NEW["space_file"], "searchSpace"])
        raise reading.document.error((file_field or "searchSpace",), found=file, allowed=allowed)
    path = request.path.parent / Path(file)
    if not path.is_file():
        why = f"no such file: {path}"
        raise reading.document.error((file_field,), found=file, why=why)
    text = read_text(path)
    is_json = text.lstrip().startswith(("{", "/"))
    document = (json_document if is_json else yaml_document)(text, str(path))
    notes = Notes(str(path))
    builder = SpaceBuilder(document, notes, request.engine)
    add_space(builder, document.data, ())
    reading.study |= builder.fields()
    return notes.taken()


def _runner(reading: _Reading) -> None:
    """The trial's command, as the study's runner unless an engine is asked for."""
    trial_field, trial = reading.get("trial")
    new_field, new = reading.get("trialCommand")
    _, new_folder = reading.get("trialCodeDirectory")
    if trial_field and not isinstance(trial, dict):
        raise reading.document.error(("trial",), found=trial, allowed="a mapping with command")
    place: tuple[str, ...] = (new_field,) if new_field else ("trial", "command")
    command = new if new_field else (trial or {}).get("command")
    folder = new_folder if new_field else (trial or {}).get("codeDir")
    for name, value in (trial or {}).items():
        if name not in ("command", "codeDir") and value not in (0, None):
            reading.note(("trial", name), "left out: lsmtune has nothing of the kind")
    if reading.request.engine is not None:
        if command is not None:
            engine = reading.request.engine
            text = f"left out: lsmtune itself measures {engine}; what the program sets beside the "
            text += "space belongs under options"
            reading.note(place, text)
        return
    if not isinstance(command, str) or not command.strip():
        raise reading.document.error(place, found=command, allowed="a command")
    reading.study["runner"] = {"command": _command(command, folder)}
    reading.note(place, "starts in the study file's folder: keep the file beside this one")
    text = f"in the program, lsmtune.trial.parameters() takes the place of {_PARAMETERS}(), and "
    text += "lsmtune.trial.report and .result those of report_intermediate_ and report_final_result"
    reading.note(place, text)


def _command(command: str, folder: object) -> list[str]:
    """The command as a list; by way of bash, as in NNI, where it is more than words."""
    elsewhere = isinstance(folder, str) and folder not in ("", ".", "./")
    if not elsewhere and _SHELL_WORDS.fullmatch(command):
        return shlex.split(command)
    whole = f"cd {shlex.quote(str(folder))} && {command}" if elsewhere else command
    # A brace begins a placeholder in a study file.
    return ["bash", "-c", whole.replace("{", "{{").replace("}", "}}")]


def _tuner(reading: _Reading) -> None:
    """Sampler, direction of the objective, seed."""
    tuner_field, tuner = reading.get("advisor", "tuner")
    reading.taken.add("tuner")
    direction = "maximize"  # NNI's default
    if tuner_field:
        if not isinstance(tuner, dict):
            allowed = "a mapping with the name of a builtin one"
            raise reading.document.error((tuner_field,), found=tuner, allowed=allowed)
        arguments = tuner.get("classArgs") or {}
        if not isinstance(arguments, dict):
            place = (tuner_field, "classArgs")
            raise reading.document.error(place, found=arguments, allowed="a mapping")
        direction = _direction(reading, tuner_field, arguments)
        _sampler(reading, tuner_field, tuner, arguments)
    if reading.request.engine is None:
        reading.study["objective"] = {"metric": METRIC, "direction": direction}
    elif direction == "minimize":
        text = "left out: of its own metric lsmtune knows the direction; set objective to another"
        reading.note((tuner_field, "classArgs", "optimize_mode"), text)


def _direction(reading: _Reading, tuner_field: str, arguments: Mapping[str, Any]) -> str:
    mode = arguments.get("optimize_mode", "maximize")
    if mode not in ("maximize", "minimize"):
        place = (tuner_field, "classArgs", "optimize_mode")
        raise reading.document.error(place, found=mode, allowed="maximize, minimize")
    return str(mode)


def _sampler(
    reading: _Reading, tuner_field: str, tuner: Mapping[str, Any], arguments: Mapping[str, Any]
) -> None:
    name_field = "name" if "name" in tuner else f"builtin{tuner_field.capitalize()}Name"
    name, place = tuner.get(name_field), (tuner_field, name_field)
    sampler = _sampler_name(reading, name, place)
    settings: dict[str, Any] = {"name": sampler} if sampler else {}
    for argument, value in arguments.items():
        here = (tuner_field, "classArgs", argument)
        if argument == "seed" and isinstance(value, int) and not isinstance(value, bool):
            reading.study["seed"] = value
        elif argument == "tpe_args" and isinstance(value, dict) and sampler == "tpe":
            _tpe_arguments(reading, here, value, settings)
        elif argument != "optimize_mode" and value is not None:
            reading.note(here, "left out: an argument of NNI's implementation")
    for other in tuner:
        if other not in (name_field, "classArgs") and tuner[other] is not None:
            reading.note((tuner_field, other), "left out: lsmtune has nothing of the kind")
    if settings:
        reading.study["sampler"] = settings


def _assessor(reading: _Reading) -> None:
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
    for argument, value in (assessor.get("classArgs") or {}).items():
        here = (name, "classArgs", argument)
        if argument == "start_step" and isinstance(value, int) and value >= 0:
            pruner["warmup_steps"] = value
        elif argument != "optimize_mode":
            reading.note(here, "left out: an argument of NNI's implementation")
    reading.study["pruner"] = pruner
    text = "median compares values at the same step; NNI takes the others' running means"
    reading.note((name,), text)


def _sampler_name(reading: _Reading, name: object, place: tuple[str, ...]) -> str:
    """The sampler, said where it is another; '' where none comes near."""
    key = str(name).lower()
    if key in _TUNERS and _TUNERS[key] in SAMPLER_NAMES:
        return _TUNERS[key]
    near = _NEAREST_TUNER.get(key) or _TUNERS.get(key, "")
    if near in SAMPLER_NAMES:
        reading.note(place, f"{name} is not here; {near} comes nearest")
        return near
    known = ", ".join(SAMPLER_NAMES)
    closest = nearest_name(key, [*_TUNERS, *_NEAREST_TUNER])
    hint = f"; like {closest}" if closest else ""
    reading.note(place, f"left out: {name} is not here{hint}; samplers are {known}")
    return ""


def _tpe_arguments(
    reading: _Reading, path: tuple[str, ...], given: Mapping[str, Any], settings: dict[str, Any]
) -> None:
    # nni/algorithms/hpo/tpe_tuner.py, TpeArguments.
    known = {"n_startup_jobs": "startup_trials", "n_ei_candidates": "candidates"}
    for name, value in given.items():
        if name in known and isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            settings[known[name]] = value
        else:
            reading.note((*path, name), "left out: an argument of NNI's implementation")


def _budget(reading: _Reading) -> None:
    budget: dict[str, Any] = {}
    name, time = reading.get(*_OLD_OR_NEW["time"])
    if name:
        budget["time"] = _duration(reading, name, time)
    name, trials = reading.get(*_OLD_OR_NEW["trials"])
    if name:
        if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
            raise reading.document.error((name,), found=trials, allowed="a whole number from 1")
        budget["trials"] = trials
    if budget:
        reading.study["budget"] = budget
    name, limit = reading.get("maxTrialDuration")
    if name:
        reading.study["limits"] = {"deadline": _duration(reading, name, limit)}


def _duration(reading: _Reading, name: str, value: object) -> str:
    match = _DURATION.fullmatch(str(value).strip())
    if match is None or float(match["number"]) == 0:
        raise reading.document.error((name,), found=value, allowed="a number and s, m, h or d: 12h")
    seconds = float(match["number"]) * _SECONDS[match["unit"]]
    return format_duration(seconds)


def _others(reading: _Reading) -> None:
    """Says which fields have no counterpart."""
    for name, value in reading.document.data.items():
        place = (str(name),)
        if name in reading.taken or value is None:
            continue
        if name in _WITHOUT_EFFECT and _WITHOUT_EFFECT[name] in (None, value):
            continue
        if name == "trialConcurrency":
            reading.note(place, f"left out: one trial runs at a time, not {value}")
        elif name == "trainingService" and isinstance(value, dict):
            rest = {k: v for k, v in value.items() if (k, v) != ("platform", "local")}
            if rest:
                reading.note(place, "left out: trials run on this machine")
        elif name in ("trainingServicePlatform", "machineList"):
            reading.note(place, "left out: trials run on this machine")
        else:
            reading.note(place, "left out: lsmtune has nothing of the kind")


FORMAT = ImportFormat(NAME, "an experiment's configuration of NNI", recognises, read)
