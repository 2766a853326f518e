"""The library that notes what a program does to files, in front of Python, and its log."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from files_library import noted

from lsmtune.errors import LsmtuneError
from lsmtune.proof.file_log import FileChange, Kind, Record, history_of, read_records
from lsmtune.proof.power_model import Cut, Moment, State, contents

X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="its numbers of calls")
OPEN = """
import ctypes, errno, mmap, os, sys, threading
libc, real = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libc.so.6", use_errno=True)
fd = os.open("file", os.O_RDWR | os.O_CREAT, 0o600)
part = (ctypes.c_void_p * 2)(ctypes.cast(b"abc", ctypes.c_void_p), 3)
"""


def replayed(records: list[Record]) -> dict[str, bytes]:
    moment = Moment(history_of(records), Cut(len(records)))
    return contents(moment, State(moment.cut))[0]


def real(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("os.write(fd, b'abc'); os.write(fd, b'd')", [Kind.WRITTEN, Kind.WRITTEN]),
        ("os.writev(fd, [b'abc', b'', b'd'])", [Kind.WRITTEN]),
        # As many parts as a call takes, and more: the program was ended, or its stack overwritten.
        ("os.writev(fd, [b'ab'] * 1024)", [Kind.WRITTEN]),
        ("try: os.writev(os.pipe()[1], [b'a'] * 5000)\nexcept OSError: pass", []),
        ("os.pwrite(fd, b'abc', 700)", [Kind.WRITTEN]),
        ("os.pwritev(fd, [b'abc', b'd'], 5)", [Kind.WRITTEN]),
        ("os.pwritev(fd, [b'abc'], 5, os.RWF_DSYNC)", [Kind.WRITTEN]),
        ("os.write(os.dup2(fd, 77), b'abc')", [Kind.WRITTEN]),
        ("os.write(os.dup(fd), b'abc')", [Kind.WRITTEN]),
        ("f = os.open('file', os.O_WRONLY | os.O_APPEND); os.write(f, b'a')", "opened written"),
        (
            "os.write(fd, b'abc'); f = os.open('file', os.O_WRONLY | os.O_APPEND); "
            "os.pwrite(f, b'd', 0)",
            "written opened written",
        ),
        (
            "f = os.open('file', os.O_WRONLY | os.O_DIRECT); page = mmap.mmap(-1, 4096); "
            "page.write(b'a' * 4096); os.pwritev(f, [page], 4096)",
            "opened written",
        ),
        ("libc.pwritev2(fd, ctypes.byref(part), 1, ctypes.c_long(9), 0)", [Kind.WRITTEN]),
        ("f = libc.creat(b'new', 0o600); os.write(f, b'a')", "opened written"),
        (
            "f = libc.open64(b'new', os.O_RDWR | os.O_CREAT, 0o600); os.write(f, b'a')",
            "opened written",
        ),
        (
            "d = os.open('.', os.O_RDONLY); "
            "os.write(libc.openat(d, b'new', os.O_RDWR | os.O_CREAT, 0o600), b'a')",
            "opened written",
        ),
        (
            "d = os.open('.', os.O_RDONLY); os.mkdir('a', dir_fd=d); "
            "os.rename('file', 'a/b', src_dir_fd=d, dst_dir_fd=d); "
            "os.link('a/b', 'c', src_dir_fd=d, dst_dir_fd=d); os.unlink('a/b', dir_fd=d)",
            "made renamed linked unlinked",
        ),
        ("os.write(fd, b'a' * 9); os.open('file', os.O_TRUNC | os.O_RDWR)", "written opened"),
        ("open('other', 'w').write('text')", "opened written closed"),
        ("os.fsync(fd); os.fdatasync(fd)", [Kind.SYNCHED, Kind.SYNCHED]),
        ("f = os.open('.', os.O_RDONLY); os.fsync(f); os.close(f)", "synched closed"),
        ("libc.syncfs(fd)", [Kind.SYNCHED_ALL]),
        ("os.sync()", [Kind.SYNCHED_ALL]),
        ("libc.sync_file_range(fd, 0, 0, 0)", [Kind.RANGE_SYNCHED]),
        ("os.ftruncate(fd, 700)", [Kind.RESIZED]),
        ("os.truncate('file', 700)", [Kind.RESIZED]),
        ("os.posix_fallocate(fd, 0, 5000)", [Kind.RESIZED]),
        ("libc.fallocate(fd, 1, ctypes.c_long(0), ctypes.c_long(5000))", []),
        (
            "os.write(fd, b'a' * 9000); "
            "assert libc.fallocate(fd, 3, ctypes.c_long(100), ctypes.c_long(5000)) == 0",
            "written zeroed",
        ),
        ("os.rename('file', 'other')", [Kind.RENAMED]),
        ("os.replace(os.path.abspath('file'), '../db/./other')", [Kind.RENAMED]),
        ("libc.renameat2(-100, b'file', -100, b'other', 1)", [Kind.RENAMED]),
        ("os.link('file', 'other'); os.write(fd, b'abc')", "linked written"),
        ("os.unlink('file'); os.write(fd, b'abc')", "unlinked written"),
        ("libc.remove(b'file')", [Kind.UNLINKED]),
        ("os.mkdir('sub'); os.rename('file', 'sub/file')", "made renamed"),
        ("os.mkdir('sub'); os.rmdir('sub')", "made removed"),
        ("os.close(fd)", [Kind.CLOSED]),
        pytest.param("libc.syscall(1, fd, b'abc', 3)", [Kind.WRITTEN], marks=X86),
        pytest.param("libc.syscall(82, b'file', b'other')", [Kind.RENAMED], marks=X86),
        (
            "libc.fopen.restype = ctypes.c_void_p; s = ctypes.c_void_p(libc.fopen(b'o', b'w')); "
            "libc.fputs(b'text', s); libc.fclose(s)",
            "opened written closed",
        ),
        (
            "libc.fdopen.restype = ctypes.c_void_p; s = ctypes.c_void_p(libc.fdopen(fd, b'w')); "
            "libc.fputs(b'text', s); libc.fflush(s)",
            [Kind.WRITTEN],
        ),
        (
            "libc.fopen.restype = ctypes.c_void_p; s = ctypes.c_void_p(libc.fopen(b'file', b'a')); "
            "libc.fwrite(b'a' * 70000, 1, 70000, s); libc.fflush(s); libc.fputs(b'b', s); "
            "libc.fclose(s)",
            None,
        ),
        ("libc.mkstemp(ctypes.create_string_buffer(b'tXXXXXX'))", [Kind.OPENED]),
        ("os.write(os.pipe()[1], b'said')", [Kind.MARKED]),
        ("os.read(os.open('file', os.O_RDONLY), 9)", []),
        ("open('../beside', 'w').write('text')", []),
        (
            "mmap.mmap(os.write(fd, b'a' * 99) and fd, 99, access=mmap.ACCESS_READ)",
            "written closed",
        ),
    ],
)
def test_what_is_done_is_noted_in_order(
    files_library: Path, tmp_path: Path, code: str, kinds: list[Kind] | str | None
) -> None:
    """Without `kinds`, the C library cuts the writes as it likes."""
    records, folder = noted(files_library, tmp_path, OPEN + code)
    assert [each.kind for each in records[:2]] == [Kind.HELLO, Kind.OPENED]
    expected = [Kind[k.upper()] for k in kinds.split()] if isinstance(kinds, str) else kinds
    assert [each.kind for each in records[2:]] == expected or kinds is None
    assert replayed(records) == real(folder)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("mmap.mmap(os.write(fd, b'a' * 99) and fd, 99)", "mmap"),
        ("os.copy_file_range(os.open('/proc/self/exe', 0), fd, 9)", "copy_file_range"),
        ("os.sendfile(fd, os.open('/proc/self/exe', 0), 0, 9)", "sendfile"),
        ("r, w = os.pipe(); os.write(w, b'abc'); os.splice(r, fd, 3)", "splice"),
        ("os.symlink('file', 'other')", "symlink"),
        (
            "libc.freopen.restype = ctypes.c_void_p; "
            "s = libc.fdopen(os.dup(1), b'w'); "
            "assert libc.freopen(b'file', b'w', s) is None; raise OSError",
            "freopen",
        ),
        ("open('../beside', 'w').close(); os.link('../beside', 'other')", "link"),
        ("assert libc.aio_write(None) == -1; raise OSError", "aio_write"),
        ("assert libc.lio_listio(0, None, 0, None) == -1; raise OSError", "lio_listio"),
        ("assert libc.syscall(437, -100, b'file', None, 0) == -1; raise OSError", "openat2"),
        ("os.pwritev(fd, [b'abc'], 0, 16)", "pwritev2"),  # RWF_APPEND
        (
            "assert libc.fallocate(fd, 8, ctypes.c_long(0), ctypes.c_long(4096)) == -1; "
            "raise OSError",
            "fallocate",
        ),
        ("os.rename('file', '../beside')", "rename"),
        ("os.open('.', os.O_TMPFILE | os.O_RDWR)", "O_TMPFILE"),
        ("import fcntl; fcntl.ioctl(fd, 0x40049409, fd)", "clone"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    files_library: Path, tmp_path: Path, code: str, name: str
) -> None:
    code = f"{OPEN}\ntry:\n    {code}\nexcept OSError:\n    sys.exit(0)\nsys.exit('not refused')"
    records, folder = noted(files_library, tmp_path, code)
    assert history_of(records).refused == [name]
    assert replayed(records) == real(folder)


def test_io_uring_is_refused_by_name_and_by_the_kernel(files_library: Path, tmp_path: Path) -> None:
    """The second one goes past the library, as inline assembly does."""
    code = """
for each in (libc, real):
    assert each.syscall(425, 8, None) == -1
    assert ctypes.get_errno() == errno.ENOSYS
"""
    records, _ = noted(files_library, tmp_path, OPEN + code)
    assert history_of(records).refused == ["io_uring"]


def test_threads_are_noted_as_they_came(files_library: Path, tmp_path: Path) -> None:
    code = """
def work(number):
    for turn in range(60):
        own = os.open(f"{number}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(own, bytes([number]) * (turn * 7))
        os.pwrite(fd, bytes([number]) * 1000, 100 * turn)
        os.fsync(own)
        os.close(own)
        os.rename(f"{number}.tmp", f"{turn % 5}")
threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    records, folder = noted(files_library, tmp_path, OPEN + code)
    assert replayed(records) == real(folder)
    counts = Counter(each.kind for each in records)
    assert counts[Kind.RENAMED] == counts[Kind.SYNCHED] == 480
    assert counts[Kind.WRITTEN] == 480 + 8 * 59


def test_a_new_file_is_another_one_than_the_removed_one_of_its_number(
    files_library: Path, tmp_path: Path
) -> None:
    code = """
for turn in range(20):
    open(f"n{turn}", "w").write(str(turn))
    if turn % 3:
        os.unlink(f"n{turn}")
"""
    records, folder = noted(files_library, tmp_path, OPEN + code)
    assert replayed(records) == real(folder)


def test_processes_that_it_starts_are_left_alone(files_library: Path, tmp_path: Path) -> None:
    code = """
if os.fork() == 0:
    os.write(fd, b"by a child")
    os._exit(0)
os.wait()
os.system("echo by another program > other")
"""
    records, folder = noted(files_library, tmp_path, OPEN + code)
    assert [each.kind for each in records] == [Kind.HELLO, Kind.OPENED]
    assert replayed(records) == {"file": b""}
    assert set(real(folder)) == {"file", "other"}


def test_a_write_that_syncs_itself_is_synced(files_library: Path, tmp_path: Path) -> None:
    code = "os.write(os.open('s', os.O_WRONLY | os.O_CREAT | os.O_DSYNC), b'a'); os.write(fd, b'b')"
    records, _ = noted(files_library, tmp_path, OPEN + code)
    history = history_of(records)
    files = {history.name(file, len(records)): file for file in history.files}
    assert history.durable_to(files["s"], len(records)) >= 0
    assert history.durable_to(files["file"], len(records)) == -1


def test_a_device_that_forgets_is_one_without_syncs(files_library: Path, tmp_path: Path) -> None:
    code = "os.write(fd, b'a'); os.fsync(fd); os.sync(); os.pwritev(fd, [b'a'], 0, os.RWF_SYNC)"
    records, _ = noted(files_library, tmp_path, OPEN + code, fault="ignore-sync")
    assert [each.kind for each in records[2:]] == [Kind.WRITTEN, Kind.WRITTEN]
    assert history_of(records).commits == []


def test_an_unknown_fault_ends_the_program(files_library: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        noted(files_library, tmp_path, OPEN, fault="ignore-everything")


def test_a_log_that_breaks_off_is_read_up_to_there(files_library: Path, tmp_path: Path) -> None:
    records, _ = noted(files_library, tmp_path, OPEN + "os.write(fd, b'abc'); os.write(fd, b'd')")
    log = tmp_path / "files.log"
    content = log.read_bytes()
    log.write_bytes(content[:-1])
    assert read_records(log) == records[:-1]


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\0" * 100])
def test_another_file_is_no_log(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(LsmtuneError, match="no log of file operations"):
        read_records(tmp_path / "log")


def test_a_file_that_was_never_made_is_told() -> None:
    records = [Record(Kind.HELLO, path="/db"), Record(Kind.WRITTEN, file=7, data=b"a")]
    with pytest.raises(LsmtuneError, match=r"record 1 .* does not know"):
        history_of(records)


def test_changes_apply_as_the_kernel_does() -> None:
    content = bytearray(b"abcdef")
    assert FileChange(0, 8, b"xy").apply(content) == range(8, 10)
    assert content == b"abcdef\0\0xy"
    assert FileChange(0, 4, zeros=100).apply(content) == range(4, 10)
    assert content == b"abcd" + bytes(6)
    assert FileChange(0, size=2).apply(content) == range(2, 10)
    assert FileChange(0, size=4).apply(content) == range(4, 4)
    assert content == b"ab\0\0"


def test_a_record_of_the_folder_itself_or_of_no_known_kind_is_told(tmp_path: Path) -> None:
    """Found by fuzzing: they ended as an IndexError and a ValueError."""
    records = [Record(Kind.HELLO, path="/db"), Record(Kind.UNLINKED, path="/db")]
    with pytest.raises(LsmtuneError, match=r"record 1 .* does not know"):
        history_of(records)
    log = tmp_path / "log"
    log.write_bytes(b"lsmF" + b"\xff" * 100)
    with pytest.raises(LsmtuneError, match="no log of file operations at byte 0"):
        read_records(log)
