"""The files of docs/clusters.md: what can be known of them without a cluster; the batch script runs with shims."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import definetti as dft

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8"), re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def batch_script() -> str:
    (text,) = (text for text in blocks("bash") if text.startswith("#!"))
    return text


def resources() -> list[Any]:
    return [part for text in blocks("yaml") for part in yaml.safe_load_all(text)]


def helped_by(program: str, command: str) -> str:
    words = [sys.executable, "-m", program, command, "--help"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_scripts_and_programs_can_be_parsed() -> None:
    for text in blocks("python"):
        compile(text, "cluster.py", "exec")
    subprocess.run(["bash", "-n"], input=batch_script(), text=True, check=True)
    cluster, job = resources()
    shell = job["spec"]["template"]["spec"]["containers"][0]["args"][0]
    subprocess.run(["sh", "-n"], input=shell, text=True, check=True)
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    assert f"tcp://{cluster['metadata']['name']}-scheduler:8786" in shell
    claimed = job["spec"]["template"]["spec"]["volumes"][0]["name"]
    assert job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] == claimed


def test_options_are_those_of_the_commands() -> None:
    """Of ours, and of `dask scheduler` and `dask worker`."""
    texts = [batch_script(), *blocks("yaml")]
    for text in texts:
        for command in re.findall(r"definetti (\w+)((?:[^\n;&>]|\\\n)*)", text.replace("'definetti[dask]'", "")):
            helped = helped_by("definetti", command[0])
            assert all(option in helped for option in re.findall(r"--[a-z-]+", command[1])), command
    lines = re.findall(r"dask (scheduler|worker)([^\n&]*)", batch_script())
    containers = [resources()[0]["spec"][part]["spec"]["containers"][0] for part in ("scheduler", "worker")]
    lines += [(found["args"][1], " ".join(found["args"][2:])) for found in containers]
    assert [found["args"][0] for found in containers] == ["dask", "dask"] and len(lines) == 4
    for name, words in lines:
        helped = helped_by("dask", name)
        assert all(option in helped for option in re.findall(r"--[a-z-]+", words)), (name, words)


@pytest.mark.slow
def test_the_batch_script_runs(tmp_path: Path) -> None:
    """With a shim for `srun`; the second submission finds a finished run and gives its answer again."""
    home = tmp_path / "home"
    (home / "venv" / "bin").mkdir(parents=True)
    (home / "venv" / "bin" / "activate").write_text("")
    shims = tmp_path / "bin"
    shims.mkdir()
    (shims / "srun").write_text('#!/bin/bash\nshift\nexec "$@"\n')
    for name, module in (("dask", "dask"), ("definetti", "definetti"), ("python", "")):
        start = f'exec {sys.executable} -m {module} "$@"' if module else f'exec {sys.executable} "$@"'
        (shims / name).write_text(f"#!/bin/bash\n{start}\n")
    for file in shims.iterdir():
        file.chmod(0o755)
    (tmp_path / "model.mln").write_text((ROOT / "examples" / "smokers.mln").read_text())
    (tmp_path / "town.db").write_text((ROOT / "examples" / "town.db").read_text())
    script = batch_script().replace("--until 0.0001 --seconds 400000", "--sampler gibbs --sweeps 30")
    assert "--sweeps 30" in script and "--chains 64 --workers 32" in script
    (tmp_path / "run.sbatch").write_text(script.replace("--chains 64 --workers 32", "--chains 4 --workers 2"))
    known = {"HOME": str(home), "PATH": f"{shims}:{os.environ['PATH']}", "SLURM_JOB_ID": "1"}
    answers = []
    for _ in range(2):
        environment = {**os.environ, **known, "SLURM_SUBMIT_DIR": str(tmp_path)}
        job = subprocess.Popen(["bash", "run.sbatch"], cwd=tmp_path, env=environment, start_new_session=True)
        try:
            assert job.wait(timeout=300) in (0, 1)  # few sweeps: the answer may be flagged
        finally:
            os.killpg(job.pid, signal.SIGKILL)  # the scheduler and the worker, as SLURM does
        answers.append((tmp_path / "run.json").read_text())
        (tmp_path / "scheduler-1.json").unlink(missing_ok=True)
    assert dft.load(tmp_path / "run.dft")
    first, second = (json.loads(text) for text in answers)
    assert first["orbits"] == second["orbits"] and first["run"]["sweeps"] == 30
