"""A process of its own: how long `import numba` takes, and then making the kernels of an engine ready to run."""

from __future__ import annotations

import json
import sys
import time

from models import paper_grid, random_tables


def main(engine: str) -> None:
    import numpy  # noqa: F401  (loaded by every program that uses the library)

    before_numba = time.process_time()
    import numba  # noqa: F401

    before = time.process_time()
    from sampling import no_symmetries, prepared

    imported = time.process_time()
    group = no_symmetries(paper_grid(4) if engine == "fields" else random_tables(30, 40))
    found = time.process_time()
    list(prepared(group, 64, 3).steps())
    done = time.process_time()
    print(json.dumps({"numba": before - before_numba, "kernels": imported - before + done - found}))


if __name__ == "__main__":
    main(sys.argv[1])
