"""Pages made from the sources: a line `%% generate NAME` of a page is replaced by Markdown before it is read, as are
numbers that were measured (`measured.py`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured
import reference
from session import CACHE
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
LINE = re.compile(r"^%% generate (\w+) ?(.*)$", re.MULTILINE)


GALLERY = """
({stem})=
## {title}
{text}

```{{run}} console
:picture: {stem}.svg
:alt: {title}
python examples/gallery/{stem}.py --small
```

<details><summary>The script</summary>

```{{literalinclude}} /../examples/gallery/{stem}.py
:language: python
```

</details>
"""


def gallery(_: str) -> str:
    """Each script of examples/gallery: its docstring (a title, then text), its output and picture, its code."""
    parts = []
    for script in sorted((ROOT / "examples" / "gallery").glob("*.py")):
        title, _, text = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").partition("\n")
        parts.append(GALLERY.format(stem=script.stem, title=title.rstrip("."), text=text))
    return "\n".join(parts)


GENERATORS: dict[str, Callable[[str], str]] = {
    "gallery": gallery,
    **reference.GENERATORS,
    **measured.GENERATORS,
}


def replace(app: Sphinx, docname: str, source: list[str]) -> None:
    for file in measured.files_of(source[0]):
        app.env.note_dependency(str(file))
    if LINE.search(source[0]) or measured.CONSTANT.search(source[0]):
        app.env.note_dependency(str(CACHE / "package"))
    source[0] = rendered(source[0])


def rendered(text: str) -> str:
    return measured.replaced(LINE.sub(lambda found: GENERATORS[found.group(1)](found.group(2)), text))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", replace)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
