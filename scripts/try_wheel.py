"""Install a wheel as a newcomer does, and run its quickstart; prints what it took as JSON.

    try_wheel.py WHEEL [BUDGET]

scripts/fresh --wheel runs it in a new root file system (make fresh-wheel). A machine that is busy
takes more than three minutes for the quickstart: BUDGET (10m) is then the time for it. Any Python 3
runs this: where it is too old for lsmtune, uv (from PyPI) fetches one that is not.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NEEDED, FETCHED = (3, 11), "3.13"


def timed(what: str, *command: str | Path, output: bool = False) -> tuple[dict[str, float], str]:
    """Run `command`; how long it took, and what it printed if `output` is wanted.

    Seconds passed, and seconds of processors, which a busy machine changes little.
    """
    print(f"== {what}", file=sys.stderr)
    begun, used = time.monotonic(), processor_s()
    streams = {"stdout": subprocess.PIPE if output else sys.stderr}
    done = subprocess.run([str(word) for word in command], check=True, text=True, **streams)
    took = {"elapsed_s": time.monotonic() - begun, "processor_s": processor_s() - used}
    print(f"== {what}: {took['elapsed_s']:.1f} s", file=sys.stderr)
    return {name: round(seconds, 1) for name, seconds in took.items()}, done.stdout or ""


def processor_s() -> float:
    """What programs that ended have used of processors, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size(folder: Path) -> dict[str, float]:
    """Disk space of `folder` in MB, as `du` has it; and that of Python's compiled files in it."""
    files = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()]

    def mb(paths: list[Path]) -> float:
        return round(sum(p.stat().st_blocks * 512 for p in paths) / 1e6, 1)

    return {"mb": mb(files), "of_which_compiled_mb": mb([p for p in files if p.suffix == ".pyc"])}


def installed_with_pip(wheel: str, folder: Path) -> dict[str, object]:
    """`python3 -m venv` and `pip install`."""
    venv, _ = timed("python3 -m venv", sys.executable, "-m", "venv", folder)
    install = (folder / "bin" / "pip", "install", "--quiet", "--no-cache-dir", wheel)
    pip, _ = timed("pip install", *install)
    return {"venv": venv, "install": pip, **size(folder)}


def installed_with_uv(wheel: str, folder: Path, uv: Path) -> dict[str, object]:
    """`uv venv` and `uv pip install`, after `pip install uv` into an environment of its own."""
    timed("python3 -m venv", sys.executable, "-m", "venv", uv)
    timed("pip install uv", uv / "bin" / "pip", "install", "--quiet", "uv")
    program = uv / "bin" / "uv"
    python = sys.executable if sys.version_info >= NEEDED else FETCHED
    venv, _ = timed("uv venv", program, "venv", "--quiet", "--python", python, folder)
    install = ("pip", "install", "--quiet", "--no-cache", "--python", folder / "bin" / "python")
    done, _ = timed("uv pip install", program, *install, wheel)
    return {"venv": venv, "install": done, **size(folder)}


def main(wheel: str, budget: str | None = None) -> int:
    """Install `wheel`, run the quickstart, and print what was found."""
    work = Path(tempfile.mkdtemp(prefix="lsmtune-wheel-"))
    os_release = Path("/etc/os-release").read_text(encoding="utf-8")
    found: dict[str, object] = {
        "system": os_release.partition('PRETTY_NAME="')[2].partition('"')[0],
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
        "wheel": Path(wheel).name,
        "wheel_mb": round(Path(wheel).stat().st_size / 1e6, 1),
    }
    folder = work / "uv"
    found["uv"] = installed_with_uv(wheel, folder, work / "uv-itself")
    if sys.version_info >= NEEDED:
        folder = work / "pip"
        found["pip"] = installed_with_pip(wheel, folder)
    _, found["python"] = timed("python", folder / "bin" / "python", "--version", output=True)
    program = folder / "bin" / "lsmtune"
    timed("engines", program, "engines")
    study = ("quickstart", "--dir", work / "quickstart.lsmtune", "--json")
    study += () if budget is None else ("--budget", budget)
    took, said = timed("lsmtune quickstart", program, *study, output=True)
    result = json.loads(said)
    found["quickstart"] = {**took, "budget": budget, "trials": result["trials"]}
    found.update(
        {name: result[name] for name in ("verdict", "crash_test", "power_test") if name in result}
    )
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
