"""What every import format must do: know its files, lose nothing in silence, refuse in one line."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from lsmtune.engines.formats import IMPORTERS, chosen_format
from lsmtune.engines.formats.base import Imported, ImportFormat, ImportRequest
from lsmtune.errors import InputError

_DAMAGED = 40  # texts made of each file
_ADDED = '{}[]":,=#\\\n\t -0aé/*'


class ImporterSuite:
    """The tests of one import format, installed by its package or lsmtune's own.

    Attributes:
        name: As `--format` has it.
        files: Of the format, each with something that lsmtune cannot carry over, which a note says.
        engine: Of these files, where they do not say it.
    """

    name: ClassVar[str]
    files: ClassVar[Sequence[Path]]
    engine: ClassVar[str | None] = None

    @property
    def format(self) -> ImportFormat:
        """What it says of itself."""
        return IMPORTERS[self.name]

    def read(self, file: Path, text: str | None = None) -> Imported:
        """What `file` says, or would if it held `text`."""
        text = file.read_text(encoding="utf-8") if text is None else text
        return self.format.read(ImportRequest(text, file, self.engine))

    def test_it_says_what_it_is(self) -> None:
        assert self.format.name == self.name
        assert self.format.summary

    def test_a_file_is_recognised_by_its_content(self) -> None:
        for file in self.files:
            text = file.read_text(encoding="utf-8")
            assert chosen_format(text, file).name == self.name

    def test_nothing_is_lost_in_silence(self) -> None:
        """Every note names its place: a file, which may be one that this file names."""
        for file in self.files:
            notes = self.read(file).notes
            assert notes
            assert len(set(notes)) == len(notes)
            assert all(note.startswith(str(file.parent)) for note in notes)

    def test_a_file_gives_the_same_with_other_line_ends(self) -> None:
        for file in self.files:
            text = file.read_text(encoding="utf-8")
            # A line that goes on ends with a backslash in all of them.
            other = text.replace("\n", "\r\n").replace("\\\r\n", "\\\n")
            assert self.read(file, other) == self.read(file)

    def test_a_damaged_file_is_read_or_refused_in_one_line(self) -> None:
        for file in self.files:
            text, rng = file.read_text(encoding="utf-8"), random.Random(file.name)
            for _ in range(_DAMAGED):
                start, cut = rng.randrange(len(text)), rng.randrange(40)
                added = "".join(rng.choices(_ADDED, k=rng.randrange(5)))
                damaged = text[:start] + added + text[start + cut :]
                for known in IMPORTERS.usable().values():  # each is asked whether a file is its own
                    known.recognises(damaged)
                try:
                    said = self.read(file, damaged).notes
                except InputError as refused:
                    said = (str(refused),)
                assert all(line and "\n" not in line for line in said)
