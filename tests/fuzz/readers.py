"""Every reader of text from outside, as a function of bytes that a fuzzer can call.

Whatever the bytes, a reader may only raise LsmtuneError of one line. What it accepts is written
and read again, where lsmtune writes that format: the same must come back.

`test_fuzz_readers.py` runs each over its seeds and a few thousand changes of them. This file, run
with atheris installed, is the long run: `python tests/fuzz/readers.py NAME -runs=1000000`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from io import StringIO
from pathlib import Path

LONG_RUN = __name__ == "__main__"
if LONG_RUN:
    import atheris
with atheris.instrument_imports(include=["lsmtune"]) if LONG_RUN else nullcontext():
    from lsmtune.cli.choices import config_of_result, parse_result
    from lsmtune.cli.gate import parse_history
    from lsmtune.driver.messages import TraceInspected, parse_message
    from lsmtune.engines.formats import EXPORTERS, IMPORTERS, export, exported
    from lsmtune.engines.formats.base import ExportRequest, ImportedConfig, ImportRequest
    from lsmtune.engines.library import ENGINE_KINDS
    from lsmtune.engines.properties import parse_properties
    from lsmtune.errors import InputError, LsmtuneError
    from lsmtune.experiment.contest import parse_rules
    from lsmtune.experiment.sweep import parse_sweep
    from lsmtune.model.files import parse_document
    from lsmtune.programs.command import read_line
    from lsmtune.programs.db_bench_output import LEVELDB, ROCKSDB, parse_db_bench
    from lsmtune.programs.ekvsb import read_records
    from lsmtune.programs.ycsb_cpp_output import parse_ycsb_log
    from lsmtune.proof.file_log import history_of
    from lsmtune.proof.file_log import read_records as read_file_log
    from lsmtune.space.expression import make_expression
    from lsmtune.study.build import parse_spec
    from lsmtune.study.template import render_study
    from lsmtune.traces.summary import trace_summary
    from lsmtune.workloads.choice import options_of, pieces_of
    from lsmtune.workloads.ekvsb import imported_workload
    from lsmtune.workloads.file import parse_workload_file, workload_text

ROOT = Path(__file__).parents[2]
SEEDS = Path(__file__).parent / "seeds"
# The folder that files name others in; none of them is there.
NOWHERE = Path("/nowhere")


@dataclass(frozen=True)
class Reader:
    """`read` raises LsmtuneError and AssertionError only. `seeds`: patterns below the checkout.

    Beside those, `seeds/NAME/` has what the fuzzer found and small files of the format.
    """

    read: Callable[[bytes], None]
    seeds: tuple[str, ...] = ()


def refused(read: Callable[[], None]) -> str:
    """Why `read` refused its bytes, one line; empty where it took them."""
    try:
        read()
    except LsmtuneError as error:
        said = str(error)
        assert said, "an error without words"
        assert len(said.splitlines()) == 1, said
        said.encode()  # what cannot be shown is no message
        return said
    return ""


def text_of(data: bytes) -> str:
    """As the readers of files hand it on: text without NUL."""
    return data.decode("utf-8", "replace").replace("\0", "")


# --- files that people write


def study(data: bytes) -> None:
    text = text_of(data)
    spec = parse_spec(text, NOWHERE / "study.yaml")
    assert spec == parse_spec(text, NOWHERE / "study.yaml")


def workload(data: bytes) -> None:
    path = NOWHERE / "workload.yaml"
    found = parse_workload_file(text_of(data), path)
    assert parse_workload_file(workload_text(found), path) == found


def sweep(data: bytes) -> None:
    parse_sweep(text_of(data), NOWHERE / "sweep.yaml")


def rules(data: bytes) -> None:
    text = text_of(data)
    for engine in ENGINE_KINDS:
        parse_rules(text, "rules.yaml", engine)


def expression(data: bytes) -> None:
    values = {"a": 2, "b": 0.5, "c": "text", "d": True}
    found = make_expression(text_of(data), "study.yaml", "constraints")
    first = found.evaluate(values)
    assert make_expression(found.text, "study.yaml", "constraints").evaluate(values) == first
    if found.is_condition:
        assert (found.violation(values) <= 0) == first


def command_line_options(data: bytes) -> None:
    options_of("--config", pieces_of(text_of(data)))


# --- files of ours that people keep, and may change


def gate_history(data: bytes) -> None:
    entries = parse_history(text_of(data), "history.jsonl")
    again = "\n".join(json.dumps(asdict(entry)) for entry in entries)
    assert parse_history(again, "history.jsonl") == entries


def earlier_result(data: bytes) -> None:
    result = parse_result(text_of(data))
    for part in ("", "baseline", "candidate") if result is not None else ():
        config_of_result("result.json", result, part, "--baseline")


# --- files of other programs


def imported(name: str, data: bytes) -> None:
    text = text_of(data)
    for format_ in IMPORTERS.values():
        format_.recognises(text)
    said: list[str] = []
    for engine in (None, *ENGINE_KINDS):
        request = ImportRequest(text, NOWHERE / "file", engine, keep_defaults=True)
        said.append(refused(partial(came_back, name, request)))
        if said == [""] and isinstance(IMPORTERS[name].read(request), ImportedConfig):
            break  # it says its engine; a space is one of any engine, or of none
    if all(said):
        raise LsmtuneError(said[-1])


def came_back(name: str, request: ImportRequest) -> None:
    """Reads the file; what it gives can be written, and comes back from each format."""
    found = IMPORTERS[name].read(request)
    json.dumps([found.notes, str(found)])
    assert all(len(note.splitlines()) == 1 for note in found.notes), found.notes
    if not isinstance(found, ImportedConfig):
        parse_document(render_study(dict(found.study), found.comments), "study.yaml")
        return
    for format_ in EXPORTERS.values():
        if format_.engines and found.engine not in format_.engines:
            continue
        try:
            exported(format_.name, ExportRequest(found.engine, found.options))
            if format_.name not in IMPORTERS:
                continue
            text = export(format_.name, found.engine, found.options)
        except InputError:
            continue  # the format cannot say it
        again = ImportRequest(text, NOWHERE / "file", found.engine, keep_defaults=True)
        back = IMPORTERS[format_.name].read(again)
        assert isinstance(back, ImportedConfig)
        written = export(format_.name, found.engine, back.options)
        assert lines(written) == lines(text), f"{format_.name}: {text!r} became {written!r}"


def lines(written: str) -> list[str]:
    """What a written file says, in whatever order."""
    return sorted(written.split())


def java_properties(data: bytes) -> None:
    parse_properties(text_of(data), "workload.properties")


def ekvsb_tasks(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        workload = imported_workload(Path(file.name))[0]
        assert (
            parse_workload_file(workload_text(workload), NOWHERE / "w.yaml").phases
            == workload.phases
        )


# --- what programs print


def driver_message(data: bytes) -> None:
    message = parse_message(data)
    if isinstance(message, TraceInspected):
        trace_summary(message.document)


def db_bench_output(data: bytes) -> None:
    text = text_of(data)
    said = [refused(partial(parse_db_bench, text, "stdout", d)) for d in (ROCKSDB, LEVELDB)]
    if all(said):
        raise LsmtuneError(said[0])


def ycsb_output(data: bytes) -> None:
    parse_ycsb_log(text_of(data), "stdout")


def ekvsb_output(data: bytes) -> None:
    for record in read_records(StringIO(text_of(data)).read, "stdout"):
        assert 0 <= record.elapsed_s < float("inf")


def command_output(data: bytes) -> None:
    read_line(data.decode(errors="replace"), "line 1")


def file_log(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        history_of(read_file_log(Path(file.name)))


READERS: Mapping[str, Reader] = {
    "study": Reader(study, ("examples/*/study.yaml",)),
    "workload": Reader(workload),
    "sweep": Reader(sweep, ("examples/*/sweep.yaml",)),
    "rules": Reader(rules, ("python/lsmtune/experiment/contest_rules.yaml",)),
    "expression": Reader(expression),
    "command-line-options": Reader(command_line_options),
    "gate-history": Reader(gate_history),
    "earlier-result": Reader(earlier_result),
    **{
        name: Reader(
            partial(imported, name),
            (f"tests/engines/importers_good/{name}*", f"tests/engines/importers_bad/{name}/*"),
        )
        for name in IMPORTERS
    },
    "java-properties": Reader(java_properties, ("tests/engines/importers_*/properties*",)),
    "ekvsb-tasks": Reader(ekvsb_tasks),
    "driver-message": Reader(driver_message),
    "db_bench-output": Reader(db_bench_output, ("tests/programs/golden/*db*.txt",)),
    "ycsb-output": Reader(ycsb_output, ("tests/programs/golden/ycsb-cpp.txt",)),
    "ekvsb-output": Reader(ekvsb_output),
    "command-output": Reader(command_output),
    "file-log": Reader(file_log),
}


def seeds_of(name: str) -> list[bytes]:
    """The kept seeds, in an order that is always the same; the golden messages line by line."""
    patterns = (*READERS[name].seeds, f"{SEEDS.relative_to(ROOT)}/{name}/*")
    paths = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    files = [path.read_bytes() for path in paths if path.suffix != ".expected" and path.is_file()]
    if name == "driver-message":
        golden = sorted((ROOT / "protocol" / "golden").glob("messages-*.jsonl"))
        files += [line for path in golden for line in path.read_bytes().splitlines()]
    return files


def main() -> None:
    """`readers.py NAME [CORPUS] [flags of libFuzzer]`; the corpus begins with the kept seeds."""
    name, *rest = sys.argv[1:]
    corpus = next((word for word in rest if not word.startswith("-")), None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(corpus or scratch)
        for number, seed in enumerate(seeds_of(name)):
            (folder / f"seed-{number}").write_bytes(seed)
        read = READERS[name].read
        arguments = [sys.argv[0], *(word for word in rest if word != corpus), str(folder)]
        atheris.Setup(arguments, lambda data: refused(lambda: read(data)))
        atheris.Fuzz()


if LONG_RUN:
    main()
