"""`{run}`: what a page shows is run when the site is built, and its output is what the run printed.

    ```{run} console          ```{run} python          ```{run} file town.mln
    definetti info town.mln   model = dft.read(…)      Smokes(person)
    ```                       ```                      ```

All blocks of a page share one empty folder with a copy of `examples/`, and its Python blocks share one interpreter,
which shows the value of a last expression. Options: `:exit: 1` (another exit code than 0), `:raises: ParseError` (of a
Python block), `:hide:` (not shown), `:only: output`, `input` or `picture`, `:head: 12` (the first lines of the output),
`:grep: a|b` (lines of the output that match), `:picture: figure.svg` with `:alt:`, and `:page: report.html` (files that
the block wrote).

Times and rates are shown as `…`; a path of this machine fails the build.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from session import CACHE, ROOT, Session, package_hash
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TIMES = re.compile(r"\b\d[\d.,]*(?:e[-+]\d+)? ?(ms|s|CPU s|[kMG] (?:values )?per second|MB)\b")
SECONDS = re.compile(r"^(seconds +)[\d.e-]+$", re.MULTILINE)


class Run(SphinxDirective):
    has_content = True
    required_arguments = 1
    optional_arguments = 1
    option_spec: ClassVar = {
        **dict.fromkeys(("raises", "picture", "alt", "page", "grep"), directives.unchanged),
        "exit": directives.nonnegative_int,
        "head": directives.positive_int,
        "hide": directives.flag,
        "only": lambda text: directives.choice(text, ("input", "output", "picture")),
    }

    def run(self) -> list[nodes.Node]:
        block = {
            "kind": self.arguments[0],
            "name": (self.arguments[1:] or [""])[0],
            "body": "\n".join(self.content),
            "exit": self.options.get("exit", 0),
            "raises": self.options.get("raises"),
            "files": [self.options[key] for key in ("picture", "page") if key in self.options],
        }
        session: Any = self.env.temp_data.setdefault("run_session", Session())
        self.env.note_dependency(str(CACHE / "package"))
        for name in re.findall(r"examples/[\w/.-]*\w", block["body"]):
            self.env.note_dependency(str(ROOT / name))
        output, kept = session.result(block, self.env.app.config.run_package)
        return [] if "hide" in self.options else self.shown(block, masked(output), kept)

    def shown(self, block: dict[str, Any], output: str, kept: Path) -> list[nodes.Node]:
        only, found = self.options.get("only"), []
        if block["kind"] == "console":
            commands = block["body"].replace("\\\n", "\0").splitlines()
            for command, said in zip(commands, output.split("\0"), strict=True):
                if only in (None, "input"):
                    found.append(self.literal(f"$ {command}".replace("\0", "\\\n"), "console"))
                if said and only in (None, "output"):
                    found.append(self.literal(self.first(said), "text", "output"))
        else:
            if block["name"]:
                found += [nodes.paragraph("", "", nodes.literal("", block["name"]), classes=["file-name"])]
            if only in (None, "input"):
                found += [self.literal(block["body"], "python" if block["kind"] == "python" else "text")]
            if output and only in (None, "output"):
                found += [self.literal(self.first(output), "text", "output")]
        return found + [self.product(key, kept) for key in ("picture", "page") if key in self.options]

    def first(self, output: str) -> str:
        lines, most = output.splitlines(), self.options.get("head", 10**9)
        lines = [line if re.search(self.options.get("grep", ""), line) else "…" for line in lines]
        lines = [line for line, before in zip(lines, ["", *lines], strict=False) if (line, before) != ("…", "…")]
        return "\n".join(lines[:most] + (["…"] if len(lines) > most else []))

    def literal(self, text: str, language: str, *classes: str) -> nodes.literal_block:
        return nodes.literal_block(text, text, language=language, classes=["run", *classes])

    def product(self, key: str, kept: Path) -> nodes.Node:
        name, alt = Path(self.options[key]).name, self.options.get("alt", self.options[key])
        if key == "picture":
            return nodes.image(uri=f"/../{(kept / name).relative_to(ROOT).as_posix()}", alt=alt, classes=["run"])
        target = Path(self.env.app.outdir) / "_runs" / kept.name
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept / name, target / name)
        link = "../" * self.env.docname.count("/") + f"_runs/{kept.name}/{name}"
        frame = f'<iframe class="run" src="{link}" title="{alt}" loading="lazy"></iframe>'
        return nodes.raw("", f'{frame}<p><a href="{link}">{name}</a></p>', format="html")


def masked(output: str) -> str:
    return SECONDS.sub(r"\1…", TIMES.sub(r"… \1", output))


def note_package(app: Sphinx) -> None:
    """Pages depend on this file: they are read again when the package has changed."""
    app.config.run_package = found = package_hash()
    CACHE.mkdir(parents=True, exist_ok=True)
    file = CACHE / "package"
    if not file.exists() or file.read_text() != found:
        file.write_text(found)


def end_session(app: Sphinx, doctree: nodes.document) -> None:
    session = app.env.temp_data.pop("run_session", None)
    if session is not None:
        session.close()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("run", Run)
    app.add_config_value("run_package", "", "")
    app.connect("builder-inited", note_package)
    app.connect("doctree-read", end_session)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
