"""Every link inside the finished site leads to a page that exists and to a place on it that exists."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {value for key in ("id", "name") if (value := found.get(key))}
        self.links += [value for key in ("href", "src") if (value := found.get(key))]


def check(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    pages = {
        file.resolve(): Page(file.read_text(encoding="utf-8"))
        for file in folder.rglob("*.html")
        if "_runs" not in file.parts
    }
    for file, page in pages.items():
        for link in set(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            broken = not target.exists() or (
                bool(parts.fragment) and target in pages and unquote(parts.fragment) not in pages[target].ids
            )
            if broken:
                logging.getLogger(__name__).warning("%s: nothing at %s", file.relative_to(folder.resolve()), link)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
