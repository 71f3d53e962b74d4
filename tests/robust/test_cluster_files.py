"""The files of docs/clusters.md: what can be known of them without a cluster; the batch script runs with shims."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
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
    subprocess.run(["sh", "-n"], input=job_script(), text=True, check=True)


def job_script() -> str:
    return resources()[2]["spec"]["template"]["spec"]["containers"][0]["args"][0]


def test_resources_fit_together() -> None:
    """As the operator's definition of a DaskCluster has it (`customresources/templates.yaml` of dask-kubernetes): a
    worker needs `spec`, a scheduler `spec` and `service`, pods are those of Kubernetes."""
    cluster, claim, job = resources()
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    assert set(spec) == {"worker", "scheduler"} and set(spec["worker"]) == {"replicas", "spec"}
    assert set(spec["scheduler"]) == {"spec", "service"} and isinstance(spec["worker"]["replicas"], int)
    for part in ("worker", "scheduler"):
        (container,) = spec[part]["spec"]["containers"]
        known = {"name", "image", "env", "args", "resources", "ports", "readinessProbe", "livenessProbe"}
        assert container["name"] == part and set(container) <= known
        assert all(isinstance(word, str) for word in container["args"])
        assert all(set(pair) == {"name", "value"} and isinstance(pair["value"], str) for pair in container["env"])
    assert "$(DASK_WORKER_NAME)" in spec["worker"]["spec"]["containers"][0]["args"]  # the operator sets it
    service, offered = spec["scheduler"]["service"], spec["scheduler"]["spec"]["containers"][0]["ports"]
    assert service["selector"] == {"dask.org/cluster-name": name, "dask.org/component": "scheduler"}
    ports = {port["name"]: port["containerPort"] for port in offered}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
    assert ports == {"tcp-comm": 8786, "http-dashboard": 8787}  # the operator asks the dashboard who may go
    assert f"tcp://{name}-scheduler:8786" in job_script()
    pod = job["spec"]["template"]["spec"]
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job") and pod["restartPolicy"] == "OnFailure"
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    (volume,), (mounted,) = pod["volumes"], pod["containers"][0]["volumeMounts"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert mounted["name"] == volume["name"] and f"cd {mounted['mountPath']} " in job_script()


def test_the_job_of_kubernetes(tmp_path: Path) -> None:
    """With stand-ins for `pip` and `definetti`: an answer that is not trusted does not start the pod again, an error
    does; SIGTERM reaches the run, which is waited for."""
    pretended = """#!/bin/sh
echo "$@" >> said
trap 'echo checkpoint >> said; exit 130' TERM
[ -e slow ] && { touch ready; while :; do sleep 0.02; done; }
exit $(cat code)
"""
    for name, text in (("pip", "#!/bin/sh\n"), ("definetti", pretended)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = job_script().replace("cd /data", f"cd {tmp_path}")
    known = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for code, ends in ((0, 0), (1, 0), (2, 1), (130, 1)):
        (tmp_path / "code").write_text(str(code))
        assert subprocess.run(["sh", "-c", script], env=known).returncode == ends, code
        (tmp_path / "run.dft").touch()
    said = (tmp_path / "said").read_text().splitlines()
    assert said[0].startswith("marginals model.mln") and all(line.startswith("resume run.dft") for line in said[1:])
    (tmp_path / "slow").touch()
    with subprocess.Popen(["sh", "-c", script], env=known) as pod:
        while not (tmp_path / "ready").exists():
            assert pod.poll() is None
            time.sleep(0.01)
        pod.terminate()
        assert pod.wait(timeout=20) != 0
    assert (tmp_path / "said").read_text().splitlines()[-1] == "checkpoint"


ARGUMENTS = ("queue", "cores", "processes", "memory", "walltime", "job_script_prologue")  # of `SLURMCluster`


def test_the_program_for_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cluster inside this process in the place of SLURM's; the numbers are those of a local run."""
    from distributed import LocalCluster

    def local(**asked: Any) -> Any:
        assert set(asked) <= set(ARGUMENTS)
        return LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)

    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=local))
    monkeypatch.chdir(tmp_path)
    for name, example in (("model.mln", "smokers.mln"), ("town.db", "town.db")):
        (tmp_path / name).write_text((ROOT / "examples" / example).read_text())
    (text,) = blocks("python")
    shorter = {"until=1e-4,": "sampler='gibbs',", "seconds=86400": "sweeps=30", "=64": "=4"}
    for old, new in shorter.items():
        assert old in text
        text = text.replace(old, new)
    names: dict[str, Any] = {}
    try:
        exec(compile(text, "cluster.py", "exec"), names)
    finally:
        names["cluster"].close()
    model = dft.read(tmp_path / "model.mln", tmp_path / "town.db")
    near = dft.marginals(model, chains=4, workers=4, sampler="gibbs", sweeps=30, seed=7)
    assert names["p"].to_json()["orbits"] == near.to_json()["orbits"]
    assert dft.load(tmp_path / "run.dft") and dft.load(tmp_path / "run.json")


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
