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

ADDRESS = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
SHA256 = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"


def main() -> None:
    """Unpacks it into the folder that is named."""
    with urllib.request.urlopen(ADDRESS, timeout=60) as answer:
        archive = answer.read()
    found = hashlib.sha256(archive).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{ADDRESS}: its SHA-256 is {found}, not {SHA256}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(sys.argv[1], filter="data")


if __name__ == "__main__":
    main()
