"""A driver that inspects traces without reading them: it says what a file beside it holds."""

import json
import os
import sys
from pathlib import Path

request = json.loads(sys.stdin.readline())
here = Path(os.environ["LSMTUNE_TEST_SUMMARIES"])
output = os.fdopen(int(sys.argv[sys.argv.index("--output-fd") + 1]), "w")


def say(message: object) -> None:
    """One line to whoever started this driver."""
    output.write(json.dumps(message) + "\n")


say({"type": "hello", "protocol_version": request["protocol_version"], "driver_version": "0.0.0"})
with (here / "asked.jsonl").open("a") as asked:
    asked.write(json.dumps(request) + "\n")
document = json.loads((here / f"{Path(request['path']).name}.json").read_text())
if document["type"] == "failed":
    say(document)
    sys.exit(0)
say({"type": "trace_progress", "bytes_read": 1, "bytes_total": 2, "records": 3, "elapsed_s": 0.1})
say(document | {"path": request["path"]})
say(
    {"type": "finished", "outcome": "ok", "elapsed_s": 0.1, "cpu_s": 0.1}
    | {"rss_bytes_max": 1, "database_bytes": 0}
)
