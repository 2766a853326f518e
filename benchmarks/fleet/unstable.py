"""How often a finalist is called unstable by lsmtune's rule and by TUNA's, on simulated hosts.

    .venv/bin/python benchmarks/fleet/unstable.py --studies 1000 \
        --output docs/benchmarks/fleet/unstable.jsonl

TUNA (J. Freischuetz and others, "TUNA: Tuning Unstable and Noisy Cloud Applications", EuroSys 2025)
runs a configuration once on each host and calls it unstable where the range of the values over
their mean is 30 % or more (`AdjustedDistributedWorkerManager` of github.com/uw-mad-dash/TUNA).
lsmtune has pairs with the baseline on each host, and looks at the logarithms of their ratios
(`fleet.proof.is_unstable`). `range of means` is TUNA's limit on what lsmtune has measured: the mean
ratio of each host, so that both see as many runs and no host is faster than another.

A host multiplies all its values by a factor, and the effect of the finalist on it by another one:

- `same`: the effect is the same on all hosts: whoever calls it unstable errs;
- `sd 10 %`, `sd 20 %`: the logarithm of the effect varies from host to host by so much;
- `one in five`: on every fifth host, or one of fewer, the finalist has 0.6 of its value.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lsmtune.fleet.proof import PAIRS_LEAST, is_unstable
from lsmtune.stats.intervals import random_effects

FloatArray = npt.NDArray[np.float64]
RANGE_MAX = 0.3  # TUNA's
KINDS = ("same", "sd 10 %", "sd 20 %", "one in five")
PROOF_PAIRS = 30  # of all hosts together: proof.pairs where a study says nothing


def relative_range(values: FloatArray) -> float:
    """The range over the mean."""
    return float((values.max() - values.min()) / values.mean())


def effects_of(rng: np.random.Generator, kind: str, hosts: int) -> FloatArray:
    """The logarithm of the finalist's effect on each host."""
    if kind == "one in five":
        return np.where(np.arange(hosts) % 5 == 0, math.log(0.6), 0.0)
    return rng.normal(0.0, {"same": 0.0, "sd 10 %": 0.1, "sd 20 %": 0.2}[kind], hosts)


def called(
    rng: np.random.Generator, kind: str, hosts: int, noise_sd: float, host_sd: float
) -> list[str]:
    """The rules that call one finalist unstable."""
    effects, speeds = effects_of(rng, kind, hosts), rng.normal(0.0, host_sd, hosts)
    pairs = max(PAIRS_LEAST, math.ceil(PROOF_PAIRS / hosts))
    baseline = speeds[:, None] + rng.normal(0.0, noise_sd, (hosts, pairs))
    finalist = (speeds + effects)[:, None] + rng.normal(0.0, noise_sd, (hosts, pairs))
    ratios = finalist - baseline
    rules = {
        "lsmtune": is_unstable(random_effects([list(own) for own in ratios]), None),
        "TUNA": relative_range(np.exp(finalist[:, 0])) >= RANGE_MAX,
        "range of means": relative_range(np.exp(ratios.mean(axis=1))) >= RANGE_MAX,
    }
    return [name for name, says in rules.items() if says]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    lines = []
    for host_sd, noise_sd, hosts, kind in itertools.product(
        (0.0, 0.2), (0.02, 0.05, 0.1, 0.15), (3, 8, 10), KINDS
    ):
        rng = np.random.default_rng([hosts, round(100 * noise_sd), round(100 * host_sd)])
        counts = Counter[str]()
        for _ in range(arguments.studies):
            counts.update(called(rng, kind, hosts, noise_sd, host_sd))
        found = {"host_sd": host_sd, "noise_sd": noise_sd, "hosts": hosts, "kind": kind}
        shares = {
            name: counts[name] / arguments.studies for name in ("lsmtune", "TUNA", "range of means")
        }
        lines.append(json.dumps({**found, "studies": arguments.studies, **shares}))
        print(lines[-1], flush=True)
    if arguments.output is not None:
        arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
