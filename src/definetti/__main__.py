"""`python -m definetti`: the command line."""

from __future__ import annotations

from definetti.cli.main import main

if __name__ == "__main__":
    main()
