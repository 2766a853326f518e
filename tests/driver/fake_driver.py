"""A driver without an engine for the runner's tests: speaks the protocol, misbehaves on demand.

The option `fake` of the request says how; see `BEHAVIOURS`. Standard library only: the tests start
this file with whatever interpreter runs them.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import sys
import termios
import threading
import time
from pathlib import Path

GOLDEN = Path(os.environ["LSMTUNE_TEST_GOLDEN"])


class Driver:
    def __init__(self, output_fd: int) -> None:
        self.output = os.fdopen(output_fd, "w", buffering=1)
        self.cancelled = threading.Event()
        self.request = json.loads(sys.stdin.readline())
        self.directory = Path(self.request["directory"])
        self.options = self.request.get("options", {})
        kind = "run" if self.request["command"] == "run" else "probe"
        lines = (GOLDEN / f"messages-{kind}.jsonl").read_text().splitlines()
        self.messages = {json.loads(line)["type"]: json.loads(line) for line in lines}
        self.golden = lines

    def start_child(self) -> None:
        import subprocess  # here, since it is a tenth of the time of the many other runs

        child = subprocess.Popen(["sleep", "600"], close_fds=False)
        (self.directory.parent / "child.pid").write_text(str(child.pid))

    def say(self, *kinds: str) -> None:
        for kind in kinds:
            self.output.write(json.dumps(self.messages[kind]) + "\n")

    def say_golden(self) -> None:
        self.output.write("".join(f"{line}\n" for line in self.golden))

    def say_failed(self, outcome: str, kind: str, message: str) -> None:
        error = {"kind": kind, "message": message}
        rest: dict[str, object] = {"field": None, "found": None, "allowed": None, "nearest": []}
        self.messages["failed"] = {"type": "failed", "outcome": outcome, "error": error | rest}
        self.say("failed")

    def begin(self) -> None:
        """Says so, and waits until it was read: what a tuner has not read when it kills is lost."""
        self.say("hello", "opened", "phase_started", "interval")
        while fcntl.ioctl(self.output.fileno(), termios.FIONREAD, struct.pack("i", 0)).strip(b"\0"):
            time.sleep(0.001)

    def watch_stdin(self) -> None:
        """Honours `cancel` unless told not to; exits at end of file, as the real driver does."""
        for line in sys.stdin:
            if json.loads(line) == {"command": "cancel"}:
                self.cancelled.set()
        os._exit(9)


def ok(driver: Driver) -> None:
    driver.say_golden()


def hang(driver: Driver) -> None:
    driver.begin()
    time.sleep(600)


def hang_with_child(driver: Driver) -> None:
    """The grandchild holds the message pipe open and must die with the group."""
    driver.start_child()
    driver.begin()
    time.sleep(600)


def leave_child(driver: Driver) -> None:
    driver.start_child()
    driver.say_golden()


def silent(_driver: Driver) -> None:
    time.sleep(600)


def flood(driver: Driver) -> None:
    driver.begin()
    while True:
        driver.say("interval")


def obey(driver: Driver) -> None:
    """Stops when it is asked to."""
    driver.begin()
    driver.cancelled.wait(600)
    driver.say_failed("cancelled", "cancelled", "cancelled in phase fillrandom")


def disk_fails(driver: Driver) -> None:
    """The disk fails under the engine, whatever its configuration."""
    driver.begin()
    driver.say_failed("crashed", "io_error", "IO error: /db/000003.log: Input/output error")


def crash(driver: Driver) -> None:
    driver.begin()
    print("db.cc:12: void f(): Assertion `n < 2' failed.", file=sys.stderr, flush=True)
    number = int(driver.options["signal"])
    os.kill(os.getpid(), number)


def crash_after_phase(driver: Driver) -> None:
    driver.begin()
    driver.say("phase_finished")
    for kind in ("phase_started", "interval"):
        driver.messages[kind]["index"] = 1
        driver.say(kind)
    os.kill(os.getpid(), signal.SIGSEGV)


def stop_early(driver: Driver) -> None:
    driver.begin()
    os._exit(int(driver.options["status"]))


def eat_memory(driver: Driver) -> None:
    driver.begin()
    eaten = bytearray(os.urandom(1 << 20) * 256)
    time.sleep(600)
    print(len(eaten))


def fill_disk(driver: Driver) -> None:
    driver.begin()
    (driver.directory / "sub").mkdir(parents=True)
    with (driver.directory / "sub" / "000001.sst").open("wb") as table:
        for _ in range(64):
            table.write(os.urandom(1 << 20))
        table.flush()
    time.sleep(600)


def garbage(driver: Driver) -> None:
    driver.begin()
    driver.output.write("Segmentation fault\n")
    time.sleep(600)


def endless_line(driver: Driver) -> None:
    driver.say("hello")
    while True:
        driver.output.write("x" * (1 << 20))


def no_hello(driver: Driver) -> None:
    driver.say("opened")
    time.sleep(600)


def wrong_version(driver: Driver) -> None:
    other = driver.messages["hello"]["protocol_version"] + 1
    driver.messages["hello"] = {"type": "hello", "protocol_version": other, "greeting": "hi"}
    driver.say("hello")
    time.sleep(600)


def no_newline(driver: Driver) -> None:
    driver.output.write("\n".join(driver.golden))


def die_in_a_message(driver: Driver) -> None:
    driver.begin()
    driver.output.write(json.dumps(driver.messages["phase_finished"])[:99])
    driver.output.flush()
    os.kill(os.getpid(), int(driver.options["signal"]))


def linger(driver: Driver) -> None:
    """Says its last message and does not go."""
    driver.say_golden()
    time.sleep(600)


def die_after(driver: Driver) -> None:
    driver.say_golden()
    driver.output.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def close_pipe(driver: Driver) -> None:
    driver.begin()
    driver.output.close()
    time.sleep(600)


def fail(driver: Driver) -> None:
    number = int(driver.options["line"])
    lines = (GOLDEN / "messages-failed.jsonl").read_text().splitlines()
    driver.output.write(f"{lines[0]}\n{lines[number]}\n")


def hole(driver: Driver) -> None:
    """Its intervals lack half a minute."""
    driver.begin()
    driver.messages["interval"] |= {"interval_s": 30.0}
    driver.say("interval", "phase_finished", "finished")


def when_told(driver: Driver) -> None:
    """Goes on when a file is there."""
    driver.begin()
    (driver.directory.parent / "begun").touch()
    while not (driver.directory.parent / "told").exists():
        time.sleep(0.005)
    driver.say("phase_finished", "finished")


def paced(driver: Driver) -> None:
    """As `ok`, and the option `pace` times as fast; latencies are shorter by the same."""
    pace = float(driver.options["pace"])
    for message in map(json.loads, driver.golden):
        for part in (message, message.get("phase", {})):
            for name, value in part.items():
                if name.endswith("throughput_ops_s"):
                    part[name] = value * pace
                elif name.startswith("latency_us"):
                    part[name] = value / pace
        driver.output.write(json.dumps(message) + "\n")


BEHAVIOURS = {
    function.__name__: function
    for function in (
        *(ok, hang, hang_with_child, leave_child, silent, flood, obey, crash, crash_after_phase),
        *(stop_early, eat_memory, fill_disk, garbage, endless_line, no_hello, wrong_version),
        *(no_newline, linger, die_after, close_pipe, fail, disk_fails, hole, when_told),
        paced,
        die_in_a_message,
    )
}


def main() -> None:
    driver = Driver(int(sys.argv[sys.argv.index("--output-fd") + 1]))
    driver.directory.mkdir(exist_ok=True)
    (driver.directory.parent / "request.json").write_text(json.dumps(driver.request))
    threading.Thread(target=driver.watch_stdin, daemon=True).start()
    BEHAVIOURS[driver.options.get("fake", "ok")](driver)
    sys.stdout.flush()
    if not driver.output.closed:
        driver.output.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
