"""How often is a verdict wrong, an effect found, an interval right? Simulated on bad machines.

    .venv/bin/python benchmarks/verdicts/simulated.py --studies 2000 \\
        --output docs/benchmarks/verdicts/simulated.json

Whole proofs are played through the code that judges real ones, thousands of each scenario. Exit
status 1: a rate is worse than what is stated by more than the simulation's error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from simulations.document import document
from simulations.simulate import simulate
from simulations.table import view


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--studies", type=int, default=2000, help="of each scenario, at least 100")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same result")
    parser.add_argument("--output", type=Path, help="write all rates here, as JSON")
    asked = parser.parse_args(arguments)
    if asked.studies < 100:
        parser.error(f"--studies: found {asked.studies}; at least 100 say anything of a rate")
    found = document(simulate(asked.studies, asked.seed), asked.seed)
    if asked.output is not None:
        asked.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    Console(width=None if sys.stdout.isatty() else 150, highlight=False).print(view(found))
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
