"""`lsmtune worker`: this machine takes part in a fleet, until Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from lsmtune.cli.flags import command, duration_of, option
from lsmtune.engines.library import lsmtune_home
from lsmtune.errors import InputError, LsmtuneError, need_package
from lsmtune.fleet.on_ray import DIRECTORY, NAME, SLOT
from lsmtune.machine.files import write_whole

EXAMPLES = (
    "lsmtune worker --begin 10.0.0.1        # begin a fleet; this machine does not measure",
    "lsmtune worker --join 10.0.0.1:6379    # measure for it on this machine",
    "lsmtune tune study.yaml --fleet auto   # where the fleet was begun",
    "lsmtune worker --join 10.0.0.1:6379 --slurm 8 --time 4h --dir /scratch/me",
)
PORT = 6379
# submitit has a job end itself 90 s before its time is over.
SLURM_MINUTES_MIN = 5
SLURM_MAX = 1000  # Slurm's own limit of an array is 1,001 (MaxArraySize)
_ADDRESS = re.compile(r"[^:]+:\d{1,5}")
_HOST = re.compile(r"[^:\s/]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# The least that Ray takes: it carries requests and answers of a few kilobytes.
_OBJECT_STORE_BYTES = 80_000_000
app = typer.Typer()


@command(app, "worker", EXAMPLES)
def _worker(
    begin: str | None = option(
        "--begin ADDRESS", "Begin a fleet that is reached at this address of this machine.", None
    ),
    join: str | None = option("--join HOST:PORT", "The fleet to measure for.", None),
    port: int = option("--port N", "Port of the fleet's head.", PORT, number=(1024, 65535)),
    name: str | None = option("--name NAME", "This host's name; the machine's if unset.", None),
    directory: Path | None = option("--dir DIR", "Folder of this host's databases and runs.", None),
    slurm: int | None = option(
        "--slurm N",
        "Submit N jobs of Slurm, each a host with a node of its own.",
        None,
        number=(1, SLURM_MAX),
    ),
    time: str | None = option("--time TIME", "How long a job of Slurm may take: 30m, 8h.", None),
    partition: str | None = option("--partition NAME", "Where Slurm runs the jobs.", None),
) -> None:
    """Measure for a fleet on this machine, or begin one. Runs until Ctrl-C."""
    if (begin is None) == (join is None):
        raise InputError("worker", allowed="--begin ADDRESS or --join HOST:PORT")
    if join is not None and port != PORT:
        raise InputError("--port", found=port, why="has no effect beside --join HOST:PORT")
    if begin is not None and (name is not None or directory is not None):
        why = "has no effect beside --begin ADDRESS: this machine does not measure"
        raise InputError("--dir" if name is None else "--name", why=why)
    need_package("ray", "worker")
    if join is not None and not _ADDRESS.fullmatch(join):
        raise InputError("--join", found=join, allowed="HOST:PORT, as `lsmtune worker` prints it")
    if begin is not None and not _HOST.fullmatch(begin):
        allowed = "an address of this machine, without a port (--port N)"
        raise InputError("--begin", found=begin, allowed=allowed)
    if slurm is not None:
        _submit(slurm, join, name, directory, time, partition)
        return
    if time is not None or partition is not None:
        raise InputError("--partition" if time is None else "--time", why="is for --slurm N alone")
    name = name or socket.gethostname()
    if not _NAME.fullmatch(name):
        raise InputError("--name", found=name, allowed="letters, digits, '.', '_' and '-'")
    environment = dict(os.environ, **fleet_environment(begin=join is None))
    environment[DIRECTORY] = str((directory or lsmtune_home() / "worker").absolute())
    if begin is not None:
        lsmtune_home().mkdir(parents=True, exist_ok=True)
        write_whole(_begun_path(), f"{begin}:{port}")
        typer.echo(f"a fleet begins; {token_advice()} the machines that are to measure, and")
        typer.echo(f"  on each: lsmtune worker --join {begin}:{port}")
        typer.echo("  here:    lsmtune tune STUDY --fleet auto")
    address = begin or own_address(join or "")
    _run_ray(ray_arguments(join, address, port, name), environment)


def _run_ray(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run Ray until it ends, or Ctrl-C ends it. Raises LsmtuneError where it failed."""
    with subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as ray:
        try:
            errors = ray.communicate()[1]
        except KeyboardInterrupt:
            ray.terminate()
            ray.wait()
            return
    if ray.returncode:
        last = [line for line in errors.splitlines() if line.strip()][-1:] or ["it said nothing"]
        raise LsmtuneError(f"Ray ended with status {ray.returncode}: {last[0]}")


def _submit(
    jobs: int,
    join: str | None,
    name: str | None,
    directory: Path | None,
    time: str | None,
    partition: str | None,
) -> None:
    """Have Slurm run `lsmtune worker --join` on nodes of its own."""
    if join is None:
        raise InputError(
            "--slurm", why="needs the fleet to measure for", allowed="--join HOST:PORT"
        )
    if name is not None:
        raise InputError("--name", found=name, why="a host of --slurm has the name of its node")
    if time is None:
        raise InputError("--slurm", why="needs to know how long the jobs may take: --time 8h")
    if directory is None:
        # The default is below a home that all nodes share.
        why, allowed = "needs a disk of the nodes' own to measure on", "--dir DIR"
        raise InputError("--slurm", why=why, allowed=allowed)
    minutes, rest = divmod(duration_of("--time", time), 60)
    if rest or minutes < SLURM_MINUTES_MIN:
        allowed = f"whole minutes from {SLURM_MINUTES_MIN}m: 30m, 8h"
        raise InputError("--time", found=time, allowed=allowed)
    fleet_environment(begin=False)  # there is a token; Slurm hands this environment to the jobs
    worker = [sys.executable, "-m", "lsmtune.cli.main", "worker", "--join", join]
    worker += ["--dir", str(directory.absolute())]
    folder = lsmtune_home() / "slurm"
    submitted = submit_jobs(worker, jobs, folder, minutes=int(minutes), partition=partition)
    for job in submitted:
        typer.echo(f"submitted job {job.job_id}; what it prints: {job.paths.stdout}")


def submit_jobs(
    command: Sequence[str], jobs: int, folder: Path, *, minutes: int, partition: str | None
) -> list[Any]:
    """Submit so many jobs that run `command` for up to `minutes` each; submitit's jobs.

    What submitit needs and what the jobs print is in `folder`, which all nodes have at the same
    path.

    Raises InputError where submitit or Slurm is not installed, LsmtuneError where Slurm refuses.
    """
    need_package("submitit", "worker", "--slurm", found=jobs)
    import submitit
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    try:
        executor = submitit.AutoExecutor(folder, cluster="slurm")
    except RuntimeError:
        why = "there is no srun here: run this where jobs of Slurm are submitted"
        raise InputError("worker", "--slurm", why=why) from None
    executor.update_parameters(
        name="lsmtune-worker",
        timeout_min=minutes,
        nodes=1,
        tasks_per_node=1,
        slurm_exclusive=True,
        slurm_array_parallelism=jobs,  # else 256 at once
        **({} if partition is None else {"slurm_partition": partition}),
    )
    work = submitit.helpers.CommandFunction(list(command))
    try:
        with executor.batch():
            submitted = [executor.submit(work) for _ in range(jobs)]
    except (FailedJobError, FailedSubmissionError, OSError) as error:
        last = str(error).strip().splitlines()[-1:]
        raise LsmtuneError(f"Slurm took no job: {''.join(last)}") from None
    return submitted


def ray_arguments(join: str | None, address: str, port: int, name: str) -> list[str]:
    """What `ray start` is called with. The machine where a fleet begins has no slot."""
    role = ["--head", f"--port={port}", "--include-dashboard=false"]
    if join is not None:
        slot = {SLOT: 1, f"{NAME}{name}": 1}
        role = [f"--address={join}", f"--resources={json.dumps(slot)}"]
    return [
        "start",
        *role,
        f"--node-ip-address={address}",
        "--num-cpus=0",
        "--num-gpus=0",
        f"--object-store-memory={_OBJECT_STORE_BYTES}",
        "--min-worker-port=0",
        "--max-worker-port=0",
        "--include-log-monitor=false",
        "--disable-usage-stats",
        "--block",
    ]


def token_path() -> Path:
    """Where Ray looks for the token that lets a machine into a fleet."""
    return Path.home() / ".ray" / "auth_token"


def token_advice() -> str:
    """What to do with the token of a fleet that begins; the machines that need it follow."""
    if os.environ.get("RAY_AUTH_TOKEN"):
        return "set RAY_AUTH_TOKEN on"
    return f"copy {os.environ.get('RAY_AUTH_TOKEN_PATH') or token_path()} to"


def fleet_environment(*, begin: bool) -> dict[str, str]:
    """What makes Ray ask everybody for a token; one is made where a fleet is to `begin`.

    What the user has set is kept. Raises InputError where there is no token to join with.
    """
    known = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    path = token_path()
    # A full disk, or a kill, may have left an empty one.
    if mode == "token" and not known and not (path.is_file() and path.stat().st_size):
        if not begin:
            why = "there is no token: copy it from the machine where the fleet began"
            raise InputError(str(path), why=why)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch()
        path.chmod(0o600)  # before there is something to read in it
        write_whole(path, secrets.token_hex(32))
    return {"RAY_AUTH_MODE": mode, "RAY_USAGE_STATS_ENABLED": "0"}


def address_of(fleet: str) -> str:
    """HOST:PORT of what `--fleet` names. Raises InputError for what is none."""
    if fleet == "auto":
        try:
            return _begun_path().read_text()
        except FileNotFoundError:
            why = "no fleet was begun on this machine"
            raise InputError("--fleet", found=fleet, why=why, allowed="HOST:PORT") from None
    if not _ADDRESS.fullmatch(fleet):
        raise InputError("--fleet", found=fleet, allowed="auto, HOST:PORT")
    return fleet


def _begun_path() -> Path:
    """The file that says where this machine began a fleet."""
    return lsmtune_home() / "fleet-address"


def own_address(join: str) -> str:
    """This machine's address as the fleet at `join` sees it. Nothing is sent."""
    host, port = join.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, int(port)))
        except (OSError, OverflowError) as error:
            raise InputError("--join", found=join, why=f"cannot be reached: {error}") from None
        return str(probe.getsockname()[0])
