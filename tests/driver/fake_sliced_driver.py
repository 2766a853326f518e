"""A driver without an engine that takes turns: freezes itself where the real one does.

It performs the phases of its request, each operation a little waiting, and notes in `turns.jsonl`
of the run's folder when each of its turns began and ended. Options of the request say how it
misbehaves, `at` which turn (counted from 0): `crash_at`, `hang_at`; `lie_at` says `paused` and goes
on without stopping; `late_ms` is the time between saying so and stopping. `slice_ms` is the length
of a slice. Standard library only.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

GOLDEN = Path(os.environ["LSMTUNE_TEST_GOLDEN"])
PR_SET_PDEATHSIG = 1


class SlicedDriver:
    def __init__(self, output_fd: int) -> None:
        self.output = os.fdopen(output_fd, "w", buffering=1)
        lines = map(json.loads, (GOLDEN / "messages-run.jsonl").read_text().splitlines())
        self.golden: dict[str, Any] = {message["type"]: message for message in lines}
        self.say("hello")
        self.request = json.loads(sys.stdin.readline())
        threading.Thread(target=self.watch_stdin, daemon=True).start()
        self.slices = self.request.get("slices", 0)
        if self.slices:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        self.options = {name: int(value) for name, value in self.request["options"].items()}
        self.folder = Path(self.request["directory"]).parent
        self.turn = 0
        self.began_s = time.monotonic()

    def watch_stdin(self) -> None:
        for line in sys.stdin:
            if json.loads(line) == {"command": "cancel"}:
                os.kill(os.getpid(), signal.SIGKILL)
        os._exit(9)

    def say(self, kind: str, /, **changes: object) -> None:
        message = self.golden.get(kind, {"type": kind}) | changes
        self.output.write(json.dumps(message) + "\n")

    def work(self, operations: int) -> None:
        if self.turn == self.options.get("crash_at"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.turn == self.options.get("hang_at"):
            time.sleep(600)
        time.sleep(self.options.get("slice_ms", 5) / 1000 * operations)

    def pause(self, index: int, done: int) -> None:
        """The end of a turn, and the beginning of the next."""
        if not self.slices:
            return
        self.note_turn()
        figures = {"operations_total": done, "elapsed_s": done / 10, "cpu_s": done / 20}
        lies = self.turn == self.options.get("lie_at")
        self.turn += 1
        self.say("paused", index=index, slice=done, steal_s=None, **figures)
        if not lies:
            time.sleep(self.options.get("late_ms", 0) / 1000)
            os.kill(os.getpid(), signal.SIGSTOP)
        self.began_s = time.monotonic()

    def note_turn(self) -> None:
        turn = {"turn": self.turn, "began_s": self.began_s, "ended_s": time.monotonic()}
        with (self.folder / "turns.jsonl").open("a") as file:
            file.write(json.dumps(turn) + "\n")

    def perform(self) -> None:
        self.say("opened")
        for index, phase in enumerate(self.request["workload"]["phases"]):
            self.say("phase_started", index=index, name=phase["name"], kind=phase["kind"])
            self.pause(index, 0)
            slices = self.slices if phase["kind"] == "measure" else 0
            for done in range(1, slices + 1):
                self.work(1)
                self.pause(index, done)
            if slices == 0:
                self.work(4)
            self.work(1)  # the drain
            said = dict(self.golden["phase_finished"]["phase"])
            said |= {"name": phase["name"], "kind": phase["kind"], "operations": slices}
            self.say("phase_finished", index=index, phase=said)
        self.note_turn()
        self.say("finished")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-fd", type=int, required=True)
    driver = SlicedDriver(parser.parse_args().output_fd)
    driver.perform()
    driver.output.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
