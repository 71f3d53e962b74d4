"""The folder and the interpreter that the `{run}` blocks of one page share, and where their outputs are kept.

Outputs are kept in `build/docs-cache` by the text of the block, of all blocks before it on its page and of the bundled
models. They are made anew when the package changes (with DOCS_STALE=1 only when the page does).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "docs-cache"
PICTURES = "docs/_static"  # scripts that draw pictures of the README, too

#: Runs blocks one after the other: a line of JSON in, a line of JSON out. Its own stdout is the block's.
DRIVER = """
import ast, contextlib, io, json, sys
space = {"__name__": "__main__"}
def run(text):
    tree = ast.parse(text)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<page>", "exec"), space)
    value = None if last is None else eval(compile(last, "<page>", "eval"), space)
    if value is not None:
        print(repr(value))
out = sys.stdout
for line in sys.stdin:
    said, error, message = io.StringIO(), None, ""
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            run(json.loads(line))
        except BaseException as caught:
            error, message = type(caught).__name__, str(caught)
    print(json.dumps([said.getvalue(), error, message]), file=out, flush=True)
"""


def package_hash() -> str:
    import definetti

    folder = Path(str(definetti.__file__)).parent
    files = sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return digest(*(part for file in files for part in (str(file.relative_to(folder)), file.read_bytes())))


def digest(*parts: str | bytes) -> str:
    found = hashlib.blake2b(digest_size=12)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


class Session:
    """The folder and the interpreter of one page; made when a block of it has to be run, after those before it."""

    def __init__(self) -> None:
        self.key, self.past = "", []
        self.folder: Path | None = None
        self.python: subprocess.Popen[str] | None = None

    def result(self, block: dict[str, Any], source: str) -> tuple[str, Path]:
        """The output, kept or made now, and the folder where the files that it made are kept."""
        self.key = digest(self.key, json.dumps(block, sort_keys=True), *example_files(block["body"]))
        kept = CACHE / self.key
        self.past.append(block)
        if (kept / "result.json").exists():
            found = json.loads((kept / "result.json").read_text(encoding="utf-8"))
            if found["source"] == source or os.environ.get("DOCS_STALE"):
                return found["output"], kept
        output = [self.run(one) for one in (self.past if self.folder is None else [block])][-1]
        self.keep(kept, {"source": source, "output": output}, block)
        return output, kept

    def keep(self, kept: Path, found: dict[str, Any], block: dict[str, Any]) -> None:
        assert self.folder is not None
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for name in block["files"]:
            shutil.copy(self.folder / name, kept / Path(name).name)
        (kept / "result.json").write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")

    def run(self, block: dict[str, Any]) -> str:
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="page-"))
            for name in ("examples", PICTURES):
                shutil.copytree(ROOT / name, self.folder / name)
        run = {"console": self.console, "python": self.interpret, "file": self.write}[block["kind"]]
        output = run(block)
        if str(self.folder) in output or str(ROOT) in output or str(Path.home()) + "/" in output:
            raise ExtensionError(f"a path of this machine in the output of\n{block['body']}\n{output}")
        return output

    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONHASHSEED": "0"}

    def console(self, block: dict[str, Any]) -> str:
        said = []
        for command in block["body"].replace("\\\n", " ").splitlines():
            done = subprocess.run(
                command, shell=True, cwd=self.folder, env=self.environment(), text=True, encoding="utf-8",
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            if done.returncode != block["exit"]:
                raise ExtensionError(f"exit code {done.returncode}, not {block['exit']}: {command}\n{done.stdout}")
            said.append(re.sub(r"[^\n]*\r", "", done.stdout).rstrip("\n"))  # progress overwrites itself
        return "\0".join(said)

    def interpret(self, block: dict[str, Any]) -> str:
        if self.python is None:
            words = [sys.executable, "-c", DRIVER]
            self.python = subprocess.Popen(
                words, cwd=self.folder, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True, encoding="utf-8",
            )  # fmt: skip
        assert self.python.stdin is not None and self.python.stdout is not None
        self.python.stdin.write(json.dumps(block["body"]) + "\n")
        self.python.stdin.flush()
        said, error, message = json.loads(self.python.stdout.readline())
        if error != block["raises"]:
            raise ExtensionError(f"raised {error}, not {block['raises']}:\n{block['body']}\n{said}{message}")
        return (f"{said}{error}: {message}" if error else said).rstrip("\n")

    def write(self, block: dict[str, Any]) -> str:
        assert self.folder is not None
        (self.folder / block["name"]).write_text(block["body"] + "\n", encoding="utf-8")
        return ""

    def close(self) -> None:
        if self.python is not None:
            self.python.communicate()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def example_files(body: str) -> list[str | bytes]:
    """The bundled models, always; of folders in `examples` and of PICTURES the files that the block names."""
    found = [*sorted((ROOT / "examples").rglob("*")), *sorted((ROOT / PICTURES).glob("*.py"))]
    files = [file for file in found if file.is_file() and file.suffix != ".pyc"]
    used = [file for file in files if file.parent.name == "examples" or file.name in body]
    return [part for file in used for part in (file.name, file.read_bytes())]
