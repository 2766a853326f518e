"""Kills, stalls and cut networks while a study runs on a fleet, and what is left of the study.

    sudo .venv/bin/python benchmarks/fleet/chaos.py --kills 100 --hosts 4 --trials 400

Each host is a network namespace of this machine (`network.py`), with Ray's daemons and a runner
that sleeps. A kill is a SIGKILL: of a worker that measures; of a host's raylet; of the head's
daemons, one or all, after which the tuner has to end, the fleet is started again and the command
repeated; or of the tuner, whose command is repeated. Daemons that end are started again. A stall is
a SIGSTOP of a worker that measures, as on a machine that swaps, and a SIGCONT later: after the 30 s
that make the head give it up, and within the 60 s that it has to answer then, or after these, too.
A link is cut for less and for more than 30 s, while kills go on.

Then `audited` compares the rows of the study with what the runner noted on the hosts. Exit status
1 where a trial is lost or doubled, runs of one host overlap, a late result is stored, or, where
there were stalls alone, one is not counted.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from audit import audited
from cluster import Cluster, simulated, tuned
from network import Network

from lsmtune.errors import LsmtuneError

KILLS = {"worker": 12, "raylet": 5, "tuner": 2, "head": 1, "stall": 4}
STALLS_S = ((36.0, 70.0), (36.0, 70.0), (36.0, 70.0), (100.0, 115.0))
CUTS_S = ((3.0, 25.0), (35.0, 90.0))
# The tuner ends by itself when the head's daemons have ended; each of them has its own timeouts.
_ENDS_S = 300.0
# No run begins on any host for so long: something hangs.
_STUCK_S = 400.0


def tune_here(base: Path, address: str, run_s: float, trials: int) -> None:
    """The tuner, in a process of its own."""
    from lsmtune.fleet.on_ray import RayFleet

    runner = simulated(run_s, base / "runs.jsonl")
    fleet = RayFleet(address, runner)
    try:
        result, parts, _ = tuned(base, fleet, runner, trials=trials)
        ended_unix_s = time.time()
    finally:
        fleet.close()
    found = {
        "outcomes": dict(result.counts),
        "discarded": parts.discarded,
        "ended_unix_s": ended_unix_s,
    }
    (base / "tuned.json").write_text(json.dumps(found))


class Chaos:
    """What is done to a fleet and its tuner, and how often."""

    def __init__(self, cluster: Cluster, network: Network, command: list[str]) -> None:
        self.cluster, self.network, self._command = cluster, network, command
        self.base = cluster.base
        self.kills: Counter[str] = Counter()
        self.cuts: list[dict[str, object]] = []
        self.stalls: list[dict[str, object]] = []
        self.ended_alone: list[str] = []
        self.sessions = 0
        self._heal: dict[str, float] = {}  # by host: when
        self._stalled: dict[psutil.Process, tuple[float, dict[str, object]]] = {}  # until when
        self._errors = (self.base / "tuner.err").open("ab")
        self.tune()

    def tune(self) -> None:
        """The command, again."""
        command = self.cluster.on("head", self._command)
        self.tuner = subprocess.Popen(command, stderr=self._errors, stdout=subprocess.DEVNULL)
        self.sessions += 1

    def attend(self) -> bool:
        """Heal and start again what is due; False when the study has ended."""
        now_s = time.monotonic()
        for name in [n for n, until_s in self._heal.items() if until_s <= now_s]:
            self.network.link(name, "up")
            del self._heal[name]
        for process, (until_s, stall) in list(self._stalled.items()):
            if until_s <= now_s:
                try:
                    process.resume()
                except psutil.NoSuchProcess:
                    stall["was_killed_meanwhile"] = True
                del self._stalled[process]
        for name, daemon in self.cluster.daemons.items():
            if daemon.poll() is not None and name not in self._heal:
                self.cluster.start(name)
        status = self.tuner.poll()
        if status == 0:
            return False
        if status is not None:
            # Nobody killed it.
            said = (self.base / "tuner.err").read_text().strip().splitlines()[-1:]
            self.ended_alone.append(f"status {status}: {''.join(said)[:300]}")
            self.tune()
        return True

    def cut(self) -> None:
        """The link of a host, of the head's too, for a short or a long time."""
        name = random.choice([n for n in self.cluster.daemons if n not in self._heal])
        cut_s = random.uniform(*CUTS_S[len(self.cuts) % 2])
        self.network.link(name, "down")
        self._heal[name] = time.monotonic() + cut_s
        self.cuts.append({"host": name, "cut_s": round(cut_s, 1)})

    def kill(self, what: str) -> None:
        """One kill, where there is something to hit."""
        hit = {
            "tuner": self._kill_tuner,
            "worker": self._kill_worker,
            "raylet": self._kill_raylet,
            "head": self._kill_head,
            "stall": self._stall,
        }[what]()
        self.kills.update([what] if hit else [])

    def _kill_tuner(self) -> bool:
        self.tuner.kill()
        self.tuner.wait()
        self.tune()
        return True

    def _kill_worker(self) -> bool:
        for _, process in self._measuring():
            with suppress(psutil.NoSuchProcess):
                process.kill()
                return True
        return False

    def _stall(self) -> bool:
        """Its actor alone: this runner has no process beside it."""
        for host, process in self._measuring():
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                stall_s = random.uniform(*STALLS_S[len(self.stalls) % len(STALLS_S)])
                stall: dict[str, object] = {"host": host, "stall_s": round(stall_s, 1)}
                self.stalls.append(stall)
                self._stalled[process] = time.monotonic() + stall_s, stall
                return True
        return False

    def _measuring(self) -> Iterator[tuple[str, psutil.Process]]:
        """Hosts that measure and are not stalled, with their workers."""
        lines = (self.base / "runs.jsonl").read_text().splitlines()[-8:]
        for line in random.sample(lines, len(lines)):
            with suppress(psutil.NoSuchProcess, ValueError):
                said = json.loads(line)
                process = psutil.Process(said["pid"])
                measures = said["what"] != "ok" and process.name().startswith("ray::")
                if measures and process not in self._stalled:
                    yield Path(said["directory"]).parents[1].name, process

    def _kill_raylet(self) -> bool:
        name = random.choice([n for n in self.cluster.daemons if n != "head"])
        return self._killed(name, ["raylet"])

    def _kill_head(self) -> bool:
        """And what the documents say: start the fleet again, and repeat the command."""
        daemons = random.choice([["raylet"], ["gcs_server"], ["raylet", "gcs_server"]])
        if not self._killed("head", daemons):
            return False
        try:
            status = self.tuner.wait(_ENDS_S)
            said = (self.base / "tuner.err").read_text().strip().splitlines()[-1:]
            self.ended_alone.append(f"head, status {status}: {''.join(said)[:300]}")
        except subprocess.TimeoutExpired:
            self.ended_alone.append(f"head: did not end in {_ENDS_S:g} s")
            self.tuner.kill()
        for name, daemon in self.cluster.daemons.items():
            for process in self.network.processes(name):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            daemon.wait()
        for name in list(self._heal):
            self.network.link(name, "up")
        self._heal.clear()
        self._stalled.clear()
        self.cluster.start("head")
        time.sleep(8.0)
        self.tune()
        return True

    def _killed(self, name: str, daemons: list[str]) -> bool:
        found = [p for p in self.network.processes(name) if p.name() in daemons]
        for process in found:
            process.kill()
        return bool(found)


def run(
    chaos: Chaos, log: Path, kinds: Sequence[str], *, kills: int, cuts: int, every: int
) -> None:
    """Until the study has ended: a kill of `kinds` each time `every` more runs have begun."""
    begun, changed_s, since = 0, time.monotonic(), 0
    while chaos.attend():
        time.sleep(0.2)
        now = log.read_text().count('"began"') if log.exists() else 0
        if now > since:
            since, changed_s = now, time.monotonic()
        elif time.monotonic() - changed_s > _STUCK_S:
            raise SystemExit(f"nothing was begun for {_STUCK_S:g} s: {chaos.ended_alone}")
        total = chaos.kills.total()
        if now < begun + every or total >= kills:
            continue
        begun = now
        if len(chaos.cuts) * kills < total * cuts:
            chaos.cut()
        else:
            chaos.kill(random.choices(kinds, [KILLS[kind] for kind in kinds])[0])
        told = dict(chaos.kills), len(chaos.cuts)
        print(time.strftime("%X"), now, *told, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=100, help="of all kinds, stalls included")
    parser.add_argument("--kinds", nargs="+", choices=list(KILLS), default=list(KILLS))
    parser.add_argument("--cuts", type=int, default=16, help="of links, half of them long")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--run", type=float, default=1.5, help="seconds of a run")
    parser.add_argument("--every", type=int, default=4, help="runs that begin between two kills")
    parser.add_argument("--port", type=int, default=16679)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tuner", nargs=2, metavar=("BASE", "ADDRESS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.tuner:
        try:
            tune_here(Path(asked.tuner[0]), asked.tuner[1], asked.run, asked.trials)
        except LsmtuneError as error:
            raise SystemExit(f"error: {error}") from None
        return
    random.seed(asked.seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        base = Path(name)
        with Network(base) as network, Cluster(base, asked.port, network) as cluster:
            for host in range(asked.hosts):
                cluster.start(f"h{host}")
            command = [sys.executable, __file__, "--tuner", str(base), cluster.join]
            command += ["--run", str(asked.run), "--trials", str(asked.trials)]
            chaos, began_s = Chaos(cluster, network, command), time.monotonic()
            wanted = {"kills": asked.kills, "cuts": asked.cuts, "every": asked.every}
            run(chaos, base / "runs.jsonl", asked.kinds, **wanted)
            found = {
                "kills": dict(chaos.kills),
                "stalls": chaos.stalls,
                "cuts": chaos.cuts,
                "sessions": chaos.sessions,
                "elapsed_s": round(time.monotonic() - began_s),
                "tuner_ended": Counter(chaos.ended_alone),
            }
        all_arrive = not chaos.cuts and set(chaos.kills) <= {"stall"}
        faults = audited(base, asked.trials, all_arrive=all_arrive)
        print(json.dumps(found | faults))
    raise SystemExit(1 if any(faults["faults"].values()) else 0)


if __name__ == "__main__":
    main()
