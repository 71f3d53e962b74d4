"""Available memory: what the machine reports, and the limits of control groups of both versions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from definetti.memory import available_memory, limit_memory, peak_memory
from definetti.samplers.graph.sampling import _most_batches


def _system(folder: Path, files: dict[str, str]) -> tuple[Path, Path]:
    for name, text in {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "proc", folder / "cgroup"


def test_without_control_groups_the_machine_decides(tmp_path: Path) -> None:
    assert available_memory(*_system(tmp_path, {})) == 8000 << 10


def test_the_nearest_limit_of_version_2_counts_without_the_cache(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/user/job\n",
        "cgroup/user/job/memory.max": "max\n",
        "cgroup/user/job/memory.current": "5\n",
        "cgroup/user/memory.max": "3000000\n",
        "cgroup/user/memory.current": "1000000\n",
        "cgroup/user/memory.stat": "anon 700000\ninactive_file 300000\n",
    }
    assert available_memory(*_system(tmp_path, files)) == 2_300_000


def test_version_1_in_a_container_that_does_not_see_its_own_path(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/docker/7\n4:memory:/docker/7\n0::/\n",
        "cgroup/memory/memory.limit_in_bytes": "1000\n",
        "cgroup/memory/memory.usage_in_bytes": "400\n",
        "cgroup/memory/memory.stat": "total_inactive_file 50\n",
    }
    assert available_memory(*_system(tmp_path, files)) == 650


def test_a_full_group_leaves_nothing(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "cgroup/memory.max": "10\n", "cgroup/memory.current": "12\n"}
    assert available_memory(*_system(tmp_path, files)) == 0


def test_a_system_that_reports_nothing_has_an_answer(tmp_path: Path) -> None:
    assert available_memory(tmp_path, tmp_path) > 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux forgets what was before exec")
def test_the_peak_is_of_this_program_not_of_what_started_it() -> None:
    """A process of 400 MB becomes another program: each row of a table of memory is about that program alone."""
    then = "from definetti.memory import peak_memory; print(peak_memory())"
    turn = f"os.execv(sys.executable, [sys.executable, '-c', {then!r}])"
    first = f"import os, sys; held = bytes(bytearray(400 << 20)); {turn}"
    done = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, env=os.environ, check=True)
    assert 1 << 20 < int(done.stdout) < 200 << 20


def test_the_peak_is_read_from_the_system(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text("Name: x\nVmHWM:\t  1234 kB\n")
    assert peak_memory(tmp_path) == 1234 << 10


def test_the_users_own_limit_and_that_of_the_address_space() -> None:
    before = available_memory()
    limit_memory(1)
    try:
        assert available_memory() == 0
    finally:
        limit_memory(None)
    assert available_memory() > before // 2
    script = "from definetti.memory import available_memory; print(available_memory())"
    limited = f"ulimit -v 400000; exec {sys.executable} -c '{script}'"
    out = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=True).stdout
    assert 0 < int(out) < 400_000 << 10


@pytest.mark.parametrize("statistics", [3_000, 11_551, 17_509])
def test_an_open_run_keeps_a_quarter_of_a_gigabyte_of_batches(statistics: int) -> None:
    """It has up to twice as many as a run of known length, of three arrays each; they are copied once more at the end,
    so that evidence-heavy models stay far below 2 GB however long they run."""
    most = _most_batches(statistics, 64)
    assert most >= 4 and 2 * most * 3 * 8 * statistics * 64 <= 1 << 28
