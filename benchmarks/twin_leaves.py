"""A process of its own, whose peak memory is that of the search: a sparse graph of 10^5 nodes with twin leaves."""

from __future__ import annotations

import json
import resource
import sys
import time

from measuring import peak_megabytes
from models import twin_leaves

import definetti as dft


def main() -> None:
    model = twin_leaves()
    began = time.perf_counter()
    group = dft.symmetries(model, "literals", time_limit=120.0)
    group.literal_orbit  # noqa: B018  (a user wants the orbits)
    seconds = time.perf_counter() - began
    # The search runs in a child: both peaks together bound the memory from above.
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (
        1 << 20 if sys.platform == "darwin" else 1 << 10
    )
    gigabytes = (peak_megabytes() + children) / 1024
    digits = len(str(group.order)) - 1 if group.order is not None else None
    notices = "; ".join(notice.kind for notice in group.notices)
    print(json.dumps({"gigabytes": gigabytes, "seconds": seconds, "digits": digits, "notices": notices}))


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)
    main()
