"""`scripts/release.py`, in a git repository of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "python/lsmtune/__init__.py",
    "driver/Cargo.toml",
    "driver/Cargo.lock",
    "driver/fuzz/Cargo.lock",
    "scripts/release.py",
)
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n"


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the files that have the version, all committed."""
    for kind in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{kind}_NAME", "t")
        monkeypatch.setenv(f"GIT_{kind}_EMAIL", "t@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def released(repository: Path, version: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / "scripts" / "release.py"), version]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_one_command_sets_the_version_everywhere_dates_the_changelog_and_tags(
    repository: Path,
) -> None:
    done = released(repository, "7.1.0")
    assert (done.returncode, done.stderr) == (0, "")
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "describe") == "v7.1.0"
    for file in FILES[:4]:
        assert (repository / file).read_text().count('"7.1.0"') == 1
    changelog = (repository / "CHANGELOG.md").read_text()
    assert changelog.startswith("# Changelog\n\n## Unreleased\n\n## 7.1.0 (20")
    assert changelog.endswith(")\n\n### Added\n\n- A thing.\n")
    again = released(repository, "7.2.0")
    assert "CHANGELOG.md: no lines below `## Unreleased`" in again.stderr
    assert again.returncode == 2


def test_the_versions_of_this_checkout_agree(repository: Path) -> None:
    """The one that is stated may be released, as the first is."""
    init = (repository / FILES[0]).read_text()
    stated = init.partition('__version__ = "')[2].partition('"')[0]
    assert released(repository, stated).stderr == ""


@pytest.mark.parametrize(
    ("file", "text", "version", "why"),
    [
        ("new.txt", "x", "7.0.0", "release: new.txt: is not committed"),
        (None, "", "7.0", "release: VERSION: found '7.0'; allowed: three numbers"),
        (None, "", "0.0.9", "release: VERSION: found 0.0.9; the checkout has "),
    ],
)
def test_what_is_refused_changes_nothing(
    repository: Path, file: str | None, text: str, version: str, why: str
) -> None:
    if file is not None:
        (repository / file).write_text(text)
    head = git(repository, "rev-parse", "HEAD")
    done = released(repository, version)
    assert done.returncode == 2
    assert done.stderr.startswith(why)
    assert done.stderr.count("\n") == 1
    assert git(repository, "rev-parse", "HEAD") == head
    assert git(repository, "status", "--porcelain") == (f"?? {file}" if file else "")
    assert git(repository, "tag") == ""


def test_a_crate_of_another_version_is_refused(repository: Path) -> None:
    manifest = repository / "driver" / "Cargo.toml"
    found = released(repository, "7.0.0")
    assert found.returncode == 0
    manifest.write_text(manifest.read_text().replace('version = "7.0.0"', 'version = "6.9.0"', 1))
    git(repository, "commit", "--quiet", "--all", "--message", "by hand")
    done = released(repository, "7.0.1")
    assert done.returncode == 2
    assert "driver/Cargo.toml says 6.9.0" in done.stderr


def test_a_commit_that_a_hook_refuses_leaves_the_files_as_they_were(repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert released(repository, "7.0.0").returncode == 2
    git(repository, "reset", "--quiet")
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "tag") == ""
