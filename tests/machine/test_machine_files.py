"""Files that are written whole, and what lies beside them."""

from __future__ import annotations

from pathlib import Path

from lsmtune.machine.files import write_output


def test_a_file_that_a_user_keeps_beside_an_output_is_left_alone(tmp_path: Path) -> None:
    """`options.ini.new` was overwritten, and then renamed to `options.ini`."""
    kept = tmp_path / "options.ini.new"
    kept.write_text("what I try tomorrow")
    write_output(tmp_path / "options.ini", "what is tuned")
    assert kept.read_text() == "what I try tomorrow"
    assert (tmp_path / "options.ini").read_text() == "what is tuned"
    assert len(list(tmp_path.iterdir())) == 2
