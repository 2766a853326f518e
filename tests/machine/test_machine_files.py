"""Files that are written whole, and what lies beside them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lsmtune.errors import InputError
from lsmtune.machine.files import check_output, write_output

NOBODY = 65534


def test_a_file_that_a_user_keeps_beside_an_output_is_left_alone(tmp_path: Path) -> None:
    """`options.ini.new` was overwritten, and then renamed to `options.ini`."""
    kept = tmp_path / "options.ini.new"
    kept.write_text("what I try tomorrow")
    write_output(tmp_path / "options.ini", "what is tuned")
    assert kept.read_text() == "what I try tomorrow"
    assert (tmp_path / "options.ini").read_text() == "what is tuned"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_in_a_folder_that_takes_no_new_one_is_refused_before_the_work() -> None:
    """The file itself may be written: it was refused when hours of work were to be written."""
    with tempfile.TemporaryDirectory() as name:
        output, device = Path(name) / "options.ini", Path(os.devnull)
        output.write_text("as it is deployed")
        output.chmod(0o666)
        Path(name).chmod(0o555)
        child = os.fork()
        if child == 0:
            said = ""
            try:
                if os.getuid() == 0:  # root may write anywhere
                    os.setuid(NOBODY)
                check_output(device)
                check_output(output)
            except InputError as error:
                said = str(error)
            finally:
                os._exit(0 if said.startswith(f"{output}: cannot be replaced") else 1)
        _, status = os.waitpid(child, 0)
        Path(name).chmod(0o755)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_output_that_is_replaced_stays_as_private_as_it_was(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    write_output(output, "first")
    fresh = output.stat().st_mode
    for mode in (0o600, 0o664):
        output.chmod(mode)
        write_output(output, "again")
        assert (output.read_text(), stat.S_IMODE(output.stat().st_mode)) == ("again", mode)
    output.unlink()
    assert write_output(output, "anew").stat().st_mode == fresh


def test_an_output_is_as_private_while_it_is_written(tmp_path: Path) -> None:
    """What is written in parts, as a large export is, was open to all until its last part."""
    output = tmp_path / "result.json"
    output.touch(0o600)
    seen: list[int] = []

    def parts() -> Iterator[str]:
        yield "one"
        (new,) = set(tmp_path.iterdir()) - {output}
        seen.append(stat.S_IMODE(new.stat().st_mode))

    write_output(output, parts())
    assert (seen, output.read_text()) == ([0o600], "one")
