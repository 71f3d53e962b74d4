"""`python -m definetti`, and the command `definetti`: the command line."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    try:
        from definetti.cli.main import main as command_line
    except KeyboardInterrupt:  # Ctrl-C may come before there is anyone to catch it
        print("definetti: interrupted: no answer yet", file=sys.stderr)
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
