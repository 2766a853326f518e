"""Workers of a fleet as jobs of Slurm, submitted by submitit: each has a node to itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsmtune.errors import InputError, LsmtuneError, need_package


def submit_jobs(
    command: Sequence[str],
    jobs: int,
    folder: Path,
    *,
    minutes: int,
    partition: str | None = None,
    cluster: str = "slurm",
) -> list[Any]:
    """Submit so many jobs that run `command` for up to `minutes` each; submitit's jobs.

    What submitit needs and what the jobs print is in `folder`, which all nodes have at the same
    path. With `cluster` "local" the jobs are processes of this machine.

    Raises InputError where submitit or Slurm is not installed, LsmtuneError where Slurm refuses.
    """
    need_package("submitit", "lsmtune worker", "--slurm", found=jobs)
    import submitit
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    try:
        executor = submitit.AutoExecutor(folder, cluster=cluster)
    except RuntimeError:
        why = "there is no srun here: run this where jobs of Slurm are submitted"
        raise InputError("lsmtune worker --slurm", why=why) from None
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
