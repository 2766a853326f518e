"""Copies of a closed database that share its tables.

Tables are hard-linked, everything else is copied. That is what RocksDB's own checkpoint does
(`rocksdb/utilities/checkpoint.h`: "SST and blob files are hard linked [...] other required files
(like MANIFEST) are always copied"); but a checkpoint is made by an open database, and opening the
golden one would write a new MANIFEST, log and OPTIONS file into it. The database here is closed,
all its data in tables, and so the same set of files can be taken without the engine.

Neither engine writes to a table once it is complete: they open it to read, and delete it. LevelDB
calls a table "immutable and persistent" (`leveldb/table.h`). RocksDB had two exceptions, neither
of which is met here: `write_global_seqno` of ingested files, deprecated since 5.16
(`rocksdb/options.h`), and deletion at a limited rate, which shortens a file only while it has one
link (`file/delete_scheduler.cc`). A manifest and a log may be gone on with
(`reuse_manifest_on_open`, `recycle_log_file_num`, LevelDB's `reuse_logs`), and are copied for that.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from lsmtune.databases.fingerprint import database_files

TABLE_SUFFIXES = frozenset({".sst", ".ldb", ".blob"})
# No links between these two places: another file system, one without links, too many links of one
# file, or a kernel that refuses links to files of others.
_NO_LINK = frozenset(
    {errno.EXDEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EPERM, errno.EACCES}
)


def clone(database: Path, to: Path) -> str:
    """Make a copy of the closed `database` in the new folder `to`.

    Returns why tables were copied and not linked, empty when they were linked. Raises OSError.
    """
    to.mkdir()
    why = ""
    for file in database_files(database):
        target = to / file.name
        if file.suffix in TABLE_SUFFIXES and not why:
            why = _link(file, target)
            if not why:
                continue
        shutil.copyfile(file, target)
    return why


def _link(file: Path, target: Path) -> str:
    try:
        target.hardlink_to(file)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return f"tables were copied, not linked: {error.strerror}"
    return ""
