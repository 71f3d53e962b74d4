"""Available memory: what the machine reports, and the limits of control groups of both versions."""

from pathlib import Path

from definetti.memory import available_memory


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
