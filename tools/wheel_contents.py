#!/usr/bin/env python3
"""Checks the content of an Octavo wheel, and prints its sizes.

    wheel_contents.py WHEEL

The exit code is 1 if a file is missing, or if there is a file that users do not need.
"""
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "bindings/python/octavo"
MODEL = ROOT / "models/demo"
# Libraries that auditwheel has added.
BUNDLED = r"octavo\.libs/[^/]+\.so[.\d-]*"


def expected() -> set[str]:
    """Returns the files that a wheel must contain, except its own records and bundled libraries."""
    files = {"octavo/bin/octavo", "octavo/lib/liboctavo.so.1", "octavo/lib/liboctavo_grammar.so.1"}
    files |= {f"octavo/{path.relative_to(PACKAGE)}" for kind in ("*.py", "py.typed") for path in PACKAGE.rglob(kind)}
    files |= {f"octavo/share/octavo/models/demo/{path.name}" for path in MODEL.iterdir()}
    return files


def main() -> None:
    path = Path(sys.argv[1])
    files = {item.filename: item for item in zipfile.ZipFile(path).infolist() if not item.is_dir()}
    own = {name for name in files if not re.match(rf"octavo-[^/]+\.dist-info/|{BUNDLED}$", name)}
    if own != expected():
        sys.exit(f"{path.name}: missing {sorted(expected() - own)}, not needed {sorted(own - expected())}")
    bundled = [item for name, item in files.items() if name not in own and ".so" in name]
    size = {name: item.file_size / 1e6 for name, item in files.items()}
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, unpacked {sum(size.values()):.1f} MB; "
          f"octavo {size['octavo/bin/octavo']:.1f}, liboctavo {size['octavo/lib/liboctavo.so.1']:.1f}, "
          f"liboctavo_grammar {size['octavo/lib/liboctavo_grammar.so.1']:.1f}, "
          f"{len(bundled)} bundled libraries {sum(item.file_size for item in bundled) / 1e6:.1f}, "
          f"demo model {sum(mb for name, mb in size.items() if '/models/' in name):.1f}")


if __name__ == "__main__":
    main()
