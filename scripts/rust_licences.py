"""Write licenses/rust-crates.txt: the licences of all crates in the driver and its Snappy.

    .venv/bin/python scripts/rust_licences.py

Run it after a change of driver/Cargo.toml or Cargo.lock; a test fails until then. It reads the
sources of the crates, which cargo fetches where they are missing.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
FILE = CHECKOUT / "licenses" / "rust-crates.txt"
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
_MANIFESTS = (
    CHECKOUT / "driver" / "Cargo.toml",
    CHECKOUT / "driver" / "preload" / "snappy" / "Cargo.toml",
)
_HEAD = """\
Crates that are linked into lsmtune-driver or lsmtune-snappy.so, with the licences of their authors.
Where a crate may be used under one of several licences, it is used under MIT where that is among
them. The standard library of Rust is linked, too, under MIT or the Apache License 2.0 (Copyright
(c) The Rust Project Contributors; https://www.rust-lang.org/policies/licenses). The text of the
Apache License 2.0 is in the file LICENSE.
"""


def linked(manifest: Path) -> list[dict[str, str]]:
    """What `cargo metadata` says of each crate that is linked on one of the platforms."""
    tree = ["cargo", "tree", "--manifest-path", str(manifest), "--locked"]
    tree += ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    said = [
        subprocess.run([*tree, "--target", target], check=True, capture_output=True, text=True)
        for target in TARGETS
    ]
    wanted = {tuple(line.split()[:2]) for each in said for line in each.stdout.splitlines()}
    metadata = ["cargo", "metadata", "--manifest-path", str(manifest), "--locked"]
    metadata += ["--format-version", "1", f"--filter-platform={TARGETS[0]}"]
    done = subprocess.run(metadata, check=True, capture_output=True, text=True)
    packages: list[dict[str, str]] = json.loads(done.stdout)["packages"]
    return [p for p in packages if p["source"] and (p["name"], "v" + p["version"]) in wanted]


def text_of(package: dict[str, str]) -> str:
    """The licence of a crate, as its files have it."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(p for p in folder.iterdir() if p.name.upper().startswith(("LICENSE", "COPYING")))
    chosen = [file for file in files if "MIT" in file.name] or files
    texts = [file.read_text(encoding="utf-8").strip() for file in chosen]
    if not texts:
        raise SystemExit(f"{package['name']} {package['version']}: no file with its licence")
    return "\n\n".join(texts)


def document() -> str:
    """The whole file: each text once, below the crates that it is of."""
    crates: dict[str, list[str]] = {}
    packages = [package for manifest in _MANIFESTS for package in linked(manifest)]
    for package in sorted(packages, key=lambda package: (package["name"], package["version"])):
        text = text_of(package)
        # A text of this licence is the same everywhere, but for blanks and examples at its end.
        if "Apache License" in text and "MIT" not in text and "END OF TERMS" in text:
            text = "Apache License 2.0: see the file LICENSE."
        name = f"{package['name']} {package['version']} ({package['license']})"
        crates.setdefault(text, []).append(name)
    parts = ["\n".join([*names, "-" * 78, text, ""]) for text, names in crates.items()]
    return "\n\n".join([_HEAD, *parts])


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
