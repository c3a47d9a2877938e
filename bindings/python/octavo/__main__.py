"""The `octavo` command of the installed package: replaces this process by the program."""

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "bin" / "octavo"
    os.execv(program, ["octavo", *sys.argv[1:]])


if __name__ == "__main__":
    main()
