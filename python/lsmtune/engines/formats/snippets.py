"""A Config in the words of a programming language, for the engine's binding there; and as JSON.

Each but the last is a function that gives the options to open a database with. RocksDB reads a text
of options itself, which says all that lsmtune can: C++ and Go (grocksdb) hand it over whole, Java
as properties. The bindings of Rust (the crate rocksdb) and Python (rocksdict) have no such
function; both load the OPTIONS file of a folder, and put a block cache of their own into it.
LevelDB's options are members of a struct in C++ and arguments in Python (plyvel).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from string import Template

from lsmtune.engines.catalogue import catalogue_defaults, option_catalogue
from lsmtune.engines.differences import Difference
from lsmtune.engines.formats.base import Exported, ExportFormat, ExportRequest, LeftOut, spelled
from lsmtune.engines.formats.rocksdb_options import options_text, sayable, stated_in, structure
from lsmtune.engines.formats.spelling import INT_MAX, LONG_MAX, Spelling, number, word
from lsmtune.engines.option_names import (
    BLOCK_CACHE,
    CF_SECTION,
    DB_SECTION,
    NO_BLOCK_CACHE,
    TABLE_OPTION,
    TABLE_SECTION,
    TRUTHS,
    split_structure,
)
from lsmtune.errors import InputError
from lsmtune.model.config import option_text

_LACKS = "the binding has no such option"


def _stated(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The options of the database, and those of its column family with its tables."""
    family = stated_in(options, CF_SECTION)
    table = stated_in(options, TABLE_SECTION)
    if table:
        family[TABLE_OPTION] = structure(table)
    return stated_in(options, DB_SECTION), family


def quoted(text: str) -> str:
    """A literal of C++, Go, Java and Python; no option's value has a backslash."""
    return '"' + text.replace('"', '\\"') + '"'


# --- RocksDB reads the text itself

_CPP = Template("""\
#include <rocksdb/convenience.h>
#include <rocksdb/options.h>

// Sets these options; all others keep the values that they have.
inline rocksdb::Status SetTunedOptions(rocksdb::Options* options) {
  return rocksdb::GetOptionsFromString(rocksdb::ConfigOptions(), *options,
$lines,
                                       options);
}
""")
_GO = Template("""\
package tuned

import "github.com/linxGnu/grocksdb"

// Options returns RocksDB's defaults with these options set. The caller destroys them.
func Options() (*grocksdb.Options, error) {
	return grocksdb.GetOptionsFromString(nil, $lines)
}
""")


def _cpp(request: ExportRequest) -> Exported:
    if request.engine_name == "leveldb":
        return _leveldb_cpp(request)
    options, left_out = sayable(request)
    indent = " " * len("  return rocksdb::GetOptionsFromString(")
    lines = [f"{indent}{literal}" for literal in _literals(options)] or [f'{indent}""']
    return Exported(_CPP.substitute(lines="\n".join(lines)), left_out)


def _go(request: ExportRequest) -> Exported:
    options, left_out = sayable(request)
    lines = "+\n\t\t".join([quoted(""), *_literals(options)])  # as gofmt lays it out
    return Exported(_GO.substitute(lines=lines), left_out)


def _literals(options: Mapping[str, str]) -> list[str]:
    """A literal for each option; all of them after one another are what RocksDB reads."""
    db, family = _stated(options)
    return [quoted(f"{name}={value};") for name, value in {**db, **family}.items()]


_JAVA = Template("""\
import java.util.Properties;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;

public final class TunedOptions {
  private TunedOptions() {}

  /** RocksDB's defaults with these options set. The caller closes them. */
  public static Options create() {
    RocksDB.loadLibrary();
    try (DBOptions database = database(); ColumnFamilyOptions family = family()) {
      return new Options(database, family);
    }
  }

  /** What concerns the whole database. The caller closes it. */
  public static DBOptions database() {
$database
  }

  /** What concerns a column family. The caller closes it. */
  public static ColumnFamilyOptions family() {
$family
  }

  private static <T> T checked(T options) {
    if (options == null) {
      throw new IllegalArgumentException("this RocksDB does not know one of the options");
    }
    return options;
  }
}
""")


def _java(request: ExportRequest) -> Exported:
    options, left_out = sayable(request)
    database, family = _stated(options)
    text = _JAVA.substitute(
        database=_java_body(database, "DBOptions", "getDBOptionsFromProps"),
        family=_java_body(family, "ColumnFamilyOptions", "getColumnFamilyOptionsFromProps"),
    )
    return Exported(text, left_out)


def _java_body(options: Mapping[str, str], kind: str, read: str) -> str:
    if not options:  # RocksJava refuses properties without any
        return f"    return new {kind}();"
    lines = ["    RocksDB.loadLibrary();", "    final Properties options = new Properties();"]
    for name, value in options.items():
        lines.append(f"    options.setProperty({quoted(name)}, {quoted(value)});")
    return "\n".join([*lines, f"    return checked({kind}.{read}(options));"])


# --- RocksDB reads a file in a folder

_RUST = Template("""\
use rocksdb::{Cache, ColumnFamilyDescriptor, Env, Options};
use std::error::Error;
use std::path::Path;

const OPTIONS: &str = r#"$options"#;

/// RocksDB's defaults with these options set, for
/// `DB::open_cf_descriptors(&options, path, families)`.
///
/// The crate reads options from a file only: one is in `folder`, alone, while this function runs.
pub fn tuned_options(
    folder: &Path,
) -> Result<(Options, Vec<ColumnFamilyDescriptor>), Box<dyn Error>> {
    let file = folder.join("OPTIONS-000001");
    std::fs::write(&file, OPTIONS)?;
    let loaded = Options::load_latest(folder, Env::new()?, false, Cache::new_lru_cache($cache));
    std::fs::remove_file(&file)?;
    Ok(loaded?)
}
""")
_PYTHON = Template('''\
import tempfile
from pathlib import Path

from rocksdict import Cache, Env, Options

OPTIONS = """$options"""


def tuned_options() -> tuple[Options, dict[str, Options]]:
    """RocksDB's defaults with these options set, for `Rdict(path, options, families)`.

    Keys and values of such a database are bytes: rocksdict's "raw mode".
    """
    # rocksdict reads options from a file of a folder only.
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "OPTIONS-000001").write_text(OPTIONS)
        return Options.load_latest(folder, Env(), False, Cache($cache))
''')


def _python(request: ExportRequest) -> Exported:
    is_leveldb = request.engine_name == "leveldb"
    return _leveldb_python(request) if is_leveldb else _by_file(request, _PYTHON)


def _by_file(request: ExportRequest, template: Template) -> Exported:
    """`template` with an OPTIONS file and the size of the cache that the binding puts in it."""
    options, without = sayable(request)
    cache = catalogue_defaults("rocksdb", request.version)[BLOCK_CACHE]
    left_out = list(without)
    for name, value in list(options.items()):
        is_part = name.startswith(f"{BLOCK_CACHE}.")
        if is_part or (name == NO_BLOCK_CACHE and TRUTHS.get(value)):
            why = "the binding puts a block cache of its own in place, of which it knows the size"
            left_out.append(LeftOut(name, value, why))
            del options[name]
        elif name == BLOCK_CACHE:
            try:
                cache = number(BLOCK_CACHE, 0, LONG_MAX).say(BLOCK_CACHE, value)
            except InputError as error:
                left_out.append(LeftOut.of(value, error))
                del options[name]
    text = options_text(options, request.version)
    if template is _PYTHON:
        text = text.replace('"""', '\\"\\"\\"')
    return Exported(template.substitute(options=text, cache=cache), tuple(left_out))


# --- LevelDB

_LEVELDB_CPP = Template("""\
#include <leveldb/cache.h>
#include <leveldb/filter_policy.h>
#include <leveldb/options.h>

// LevelDB's defaults with these options set. The caller deletes block_cache and filter_policy
// after the database.
inline leveldb::Options TunedOptions() {
  leveldb::Options options;
$lines  return options;
}
""")
_LEVELDB_PYTHON = Template("""\
# For plyvel: plyvel.DB(path, **OPTIONS)
OPTIONS = {
$lines}
""")


def _of_leveldb(
    names: Mapping[str, str], truths: tuple[str, str], compressions: Mapping[str, str]
) -> dict[str, Spelling]:
    """LevelDB's options in a language that calls some of them `names`, and has its own truths."""
    sizes = ("write_buffer_size", "max_file_size", "block_size", "cache_size")
    counts = ("max_open_files", "block_restart_interval", "filter_bits")
    switches = ("create_if_missing", "error_if_exists", "paranoid_checks")
    yes, no = truths
    return {
        **{name: number(names.get(name, name), 0, LONG_MAX) for name in sizes},
        **{name: number(names.get(name, name), 0, INT_MAX) for name in counts},
        **{n: word(n, {text: yes if t else no for text, t in TRUTHS.items()}) for n in switches},
        "compression": word("compression", compressions),
    }


_NONE, _SNAPPY = "leveldb::kNoCompression", "leveldb::kSnappyCompression"
_IN_CPP = _of_leveldb(
    {"cache_size": "block_cache", "filter_bits": "filter_policy"},
    ("true", "false"),
    {"none": _NONE, "no": _NONE, "snappy": _SNAPPY},
)
_IN_PYTHON = _of_leveldb(
    {"cache_size": "lru_cache_size", "filter_bits": "bloom_filter_bits"},
    ("True", "False"),
    {"none": "None", "no": "None", "snappy": '"snappy"'},
)


def _leveldb_cpp(request: ExportRequest) -> Exported:
    said, left_out = spelled(request, _IN_CPP.get, _LACKS)
    bloom = "leveldb::NewBloomFilterPolicy({})" if said.get("filter_policy") != "0" else "nullptr"
    forms = {"block_cache": "leveldb::NewLRUCache({})", "filter_policy": bloom}
    values = {name: forms.get(name, "{}").format(value) for name, value in said.items()}
    lines = "".join(f"  options.{name} = {value};\n" for name, value in values.items())
    return Exported(_LEVELDB_CPP.substitute(lines=lines), left_out)


def _leveldb_python(request: ExportRequest) -> Exported:
    said, left_out = spelled(request, _IN_PYTHON.get, _LACKS)
    lines = "".join(f'    "{name}": {value},\n' for name, value in said.items())
    return Exported(_LEVELDB_PYTHON.substitute(lines=lines), left_out)


# --- what an open RocksDB can change, as calls in C++, and how to go back
#
# Facts from `include/rocksdb/db.h`: SetDBOptions takes the options of the database, SetOptions
# those of a column family and of its tables; each call sets all of its options or none. A structure
# that is given in part keeps its other parts. Which options can be changed, and since when, is in
# the option catalogue. A call of SetDBOptions makes 1 MiB of a `bytes_per_sync` of 0, whether it
# names that option or not (`db/db_impl/db_impl.cc`; seen with 7.8.3 and 10.10.1).

_SYNCED = "bytes_per_sync"
_SET_OPTIONS = Template("""\
#include <rocksdb/db.h>

// Changes an open database. What has to be reopened for is named above.
inline rocksdb::Status SetTunedOptions(rocksdb::DB* db) {
$forward}

// The way back.
inline rocksdb::Status SetOptionsBack(rocksdb::DB* db) {
$back}
""")


def _set_options(request: ExportRequest) -> Exported:
    """A function that changes what can be changed of an open database, and its inverse."""
    forward: dict[str, str] = {}
    back: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for each in request.differences():
        why = _why_not(each, request.version)
        if each.value is None or each.other_value is None or why:
            value = "(default)" if each.value is None else option_text(each.value)
            left_out.append(LeftOut(each.option, value, why))
        else:
            forward[each.option] = option_text(each.value)
            back[each.option] = option_text(each.other_value)
    infos = option_catalogue("rocksdb")
    if any(infos[name].scope == "db" for name in forward):
        # What the option has after the call, and after the one that leads back.
        default = catalogue_defaults("rocksdb", request.version)[_SYNCED]
        for options in (request.options, request.other):
            value = option_text(options.get(_SYNCED, default))
            if value == "0" and all(each.option != _SYNCED for each in left_out):
                left_out.append(LeftOut(_SYNCED, value, "SetDBOptions makes 1 MiB of it"))
    text = _SET_OPTIONS.substitute(forward=_set_calls(forward), back=_set_calls(back))
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
    if each.value is None or each.other_value is None:
        return "RocksDB's default is not known, so that there is no way back"
    return ""


def _set_calls(options: Mapping[str, str]) -> str:
    """Statements of the function that sets `options`."""
    infos, calls = option_catalogue("rocksdb"), []
    for call, scopes in (("SetDBOptions", ("db",)), ("SetOptions", ("column_family", "table"))):
        part = {name: value for name, value in options.items() if infos[name].scope in scopes}
        # Dotted names as structures of the option that they begin with.
        stated = split_structure(structure(part))
        lines = "".join(f"      {{{quoted(n)}, {quoted(v)}}},\n" for n, v in stated.items())
        if lines:
            calls.append(f"db->{call}({{\n{lines}  }});\n")
    if not calls:
        return "  (void)db;\n  return rocksdb::Status::OK();\n"
    *earlier, last = calls
    text = "".join(f"  rocksdb::Status status = {each}" for each in earlier)
    text += "  if (!status.ok()) return status;\n" if earlier else ""
    return f"{text}  return {last}"


# --- JSON


def _json(request: ExportRequest) -> Exported:
    document = {
        "engine": request.engine_name,
        "version": request.version,
        "configuration": request.label,
        "options": dict(request.options),
    }
    return Exported(json.dumps(document, indent=2) + "\n")


_BOTH = ("rocksdb", "leveldb")
EXPORTS = (
    ExportFormat("c++", _BOTH, "tuned_options.h", _cpp, "//"),
    ExportFormat("java", ("rocksdb",), "TunedOptions.java", _java, "//"),
    ExportFormat("rust", ("rocksdb",), "tuned_options.rs", partial(_by_file, template=_RUST), "//"),
    ExportFormat("go", ("rocksdb",), "tuned_options.go", _go, "//"),
    ExportFormat("python", _BOTH, "tuned_options.py", _python, "#"),
    ExportFormat("json", (), "options.json", _json),
    ExportFormat("set-options", ("rocksdb",), "set_options.h", _set_options, "//"),
)
