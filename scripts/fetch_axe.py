"""Fetches axe-core, which says of a page what keeps people out, for the tests in a browser.

    scripts/fetch_axe.py build/axe-core

From the registry of npm, whose program it does not need. The archive is checked by its digest.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path

ADDRESS = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
SHA256 = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
SCRIPT = "package/axe.min.js"


def main() -> None:
    """Puts the script into the folder that is named."""
    with urllib.request.urlopen(ADDRESS, timeout=60) as answer:
        archive = answer.read()
    found = hashlib.sha256(archive).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{ADDRESS}: its SHA-256 is {found}, not {SHA256}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        script = files.extractfile(SCRIPT)
        if script is None:
            raise SystemExit(f"{ADDRESS}: {SCRIPT} is no file")
        place = Path(sys.argv[1]) / SCRIPT
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(script.read())


if __name__ == "__main__":
    main()
