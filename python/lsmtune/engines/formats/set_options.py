"""What an open RocksDB can change, as calls in C++, and how to go back.

Facts from `include/rocksdb/db.h`: SetDBOptions takes the options of the database, SetOptions those
of a column family and of its tables; each call sets all of its options or none. A structure that is
given in part keeps its other parts. Which options can be changed, and since when, is in the option
catalogue. A call of SetDBOptions makes 1 MiB of a `bytes_per_sync` of 0, whether it names that
option or not (`db/db_impl/db_impl.cc`; seen with 7.8.3 and 10.10.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from lsmtune.engines.catalogue import option_catalogue
from lsmtune.engines.formats.base import Exported, ExportFormat, ExportRequest, LeftOut
from lsmtune.engines.formats.difference import Difference, default_of, differences
from lsmtune.engines.formats.rocksdb_options import structure
from lsmtune.engines.formats.snippets import quoted
from lsmtune.engines.option_names import split_structure
from lsmtune.model.config import option_text

_SYNCED = "bytes_per_sync"
_TEXT = Template("""\
#include <rocksdb/db.h>

// Changes an open database. What has to be reopened for is named above.
inline rocksdb::Status SetTunedOptions(rocksdb::DB* db) {
$forward}

// The way back.
inline rocksdb::Status SetOptionsBack(rocksdb::DB* db) {
$back}
""")


def write(request: ExportRequest) -> Exported:
    """A function that changes what can be changed of an open database, and its inverse."""
    forward: dict[str, str] = {}
    back: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for each in differences("rocksdb", request.version, request.options, request.other):
        why = _why_not(each, request.version)
        if each.here is None or each.there is None or why:
            value = "(default)" if each.here is None else option_text(each.here)
            left_out.append(LeftOut(each.option, value, why))
        else:
            forward[each.option] = option_text(each.here)
            back[each.option] = option_text(each.there)
    of_database, _ = _by_call(forward)
    if of_database:
        # What the option has after the call, and after the one that leads back.
        default = default_of("rocksdb", request.version, _SYNCED)
        for options in (request.options, request.other):
            value = option_text(options.get(_SYNCED, default or 0))
            if value == "0" and all(each.option != _SYNCED for each in left_out):
                left_out.append(LeftOut(_SYNCED, value, "SetDBOptions makes 1 MiB of it"))
    text = _TEXT.substitute(forward=_body(forward), back=_body(back))
    return Exported(text, tuple(left_out))


def _why_not(each: Difference, version: str | None) -> str:
    """Why an open database cannot be given the option's value and its old one; or nothing."""
    info = option_catalogue("rocksdb").get(each.option)
    if info is None or not info.mutable:
        return "RocksDB takes it when it opens a database, and not later"
    if version is not None and not info.exists_in(version):
        return f"RocksDB {version} has no such option"
    if version is not None and not info.mutable_in(version):
        return f"an open RocksDB takes it since {info.mutable_since}, and this is {version}"
    if each.here is None or each.there is None:
        return "RocksDB's default is not known, so that there is no way back"
    return ""


def _by_call(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The options for SetDBOptions, and those for SetOptions."""
    infos = option_catalogue("rocksdb")
    of_database = {name: value for name, value in options.items() if infos[name].scope == "db"}
    return of_database, {n: value for n, value in options.items() if n not in of_database}


def _body(options: Mapping[str, str]) -> str:
    """Statements of the function that sets `options`."""
    names = ("SetDBOptions", "SetOptions")
    parts = zip(names, _by_call(options), strict=True)
    # Dotted names as structures of the option that they begin with.
    calls = [(call, split_structure(structure(part))) for call, part in parts if part]
    if not calls:
        return "  (void)db;\n  return rocksdb::Status::OK();\n"
    text = ""
    for number, (call, stated) in enumerate(calls, start=1):
        is_last = number == len(calls)
        lines = "".join(
            f"      {{{quoted(name)}, {quoted(value)}}},\n" for name, value in stated.items()
        )
        text += f"  {'return' if is_last else 'rocksdb::Status status ='} db->{call}({{\n"
        text += f"{lines}  }});\n"
        text += "" if is_last else "  if (!status.ok()) return status;\n"
    return text


EXPORT = ExportFormat(
    "set-options",
    ("rocksdb",),
    "set_options.h",
    write,
    comment="//",
    lacks="an open RocksDB cannot be given {option}",
)
