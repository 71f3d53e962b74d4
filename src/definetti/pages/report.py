"""`report`: one page of HTML about a run, complete in itself. It needs no network and nothing on it is evaluated.

The page is made from a *document*: the JSON object of an answer, with what a run keeps for pages under the key `page`
(`store/writing.py`). Sections without data say so.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, cast

from definetti import show
from definetti.errors import ModelError
from definetti.files import as_path, write_atomically
from definetti.model.checked_input import listed
from definetti.model.compare import Comparison, compare
from definetti.model.marginals import Marginals
from definetti.pages.fragments import tag, text
from definetti.pages.sections import (
    comparison_section,
    convergence_section,
    differences,
    marginals_section,
    model_section,
    reproduce_section,
    symmetry_section,
    verdict_section,
)
from definetti.store.loading import Saved, load_document, saved_answers
from definetti.store.writing import document

POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; script-src {script}; style-src {style}"
)

Answer = Marginals | Mapping[str, Any] | str | PathLike[str]


def report(
    answer: Answer,
    path: str | PathLike[str] | None = None,
    *,
    exact: Answer | None = None,
    others: Sequence[Answer] = (),
) -> Path:
    """Write one self-contained HTML page about an answer.

    Parameters
    ----------
    answer : Marginals or path
        What the page is about: an answer, or a file that `save` wrote.
    path : path
        The page, a .html file.
    exact : Marginals or path, optional
        The truth to compare with.
    others : sequence of Marginals or paths
        Other runs to compare with.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import tempfile, definetti as dft
    >>> p = dft.exact(dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dft.report(p, f"{folder}/page.html").stat().st_size < 2_000_000
    True
    """
    if not isinstance(answer, Marginals | Mapping | str | PathLike):
        cure = "dft.report(dft.marginals(model), 'page.html')"
        raise ModelError(f"a report is of an answer or of a file that holds one, as in {cure}; got a {_kind(answer)}")
    if path is None:
        raise ModelError("a report needs the path of its page, as in dft.report(answer, 'page.html')")
    path = as_path(path, "a page")
    if path.suffix not in (".html", ".htm"):
        raise ModelError(f"cannot write {path.name}: a page is a .html file")
    first = _document(answer)
    one = _saved(first, answer)
    against = [] if exact is None else [("the truth", exact)]
    single = isinstance(others, Marginals | Mapping | str | PathLike)
    others = [cast("Answer", others)] if single else listed(others, "others are answers, or files that hold them")
    against += [(_name(other) or f"run {k + 2}", other) for k, other in enumerate(others)]
    found = [(name, compare(one, _saved(_document(other), other))) for name, other in against]
    try:
        made = page(first, found)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(answer, Marginals):
            raise
        raise ModelError(
            f"{_name(answer) or 'the document'} was changed by hand: {error!r} in what pages need"
        ) from None
    write_atomically(path, made)
    return path


def _document(answer: Answer) -> Mapping[str, Any]:
    if isinstance(answer, Marginals):
        return document(answer)
    if not isinstance(answer, Mapping | str | PathLike):
        raise ModelError(f"a report is of an answer or of a file that holds one; got a {_kind(answer)}")
    return answer if isinstance(answer, Mapping) else load_document(Path(answer))


def _saved(content: Mapping[str, Any], answer: Answer) -> Saved:
    try:
        return saved_answers(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        which = _name(answer) or "the mapping"
        raise ModelError(f"{which} is no answer: {error!r} in its queries and orbits") from None


def _kind(value: object) -> str:
    return type(value).__name__


def _name(answer: Answer) -> str | None:
    return Path(answer).name if isinstance(answer, str | PathLike) else None


def page(content: Mapping[str, Any], comparisons: Sequence[tuple[str, Comparison]] = ()) -> str:
    """The whole page as text."""
    kept = content.get("page") or {}
    script = files("definetti.pages").joinpath("page.js").read_text(encoding="utf-8")
    style = files("definetti.pages").joinpath("page.css").read_text(encoding="utf-8")
    title = _title(content, kept)
    data = {
        "convergence": kept.get("convergence"),
        "comparisons": [{"rows": differences(found)} for _, found in comparisons],
    }
    policy = POLICY.format(script=_hash(script), style=_hash(style))
    sections = [
        verdict_section(content, comparisons),
        marginals_section(content),
        symmetry_section(content, kept),
        convergence_section(content, kept),
        comparison_section(comparisons),
        model_section(content, kept),
        reproduce_section(content, kept),
    ]
    parts = (("marginals", "Marginals"), ("symmetry", "Symmetry"), ("convergence", "Convergence"),
             ("comparison", "Comparison"), ("model", "Model"), ("reproduce", "Reproduce"))  # fmt: skip
    links = "".join(tag("li", tag("a", name, href=f"#{key}")) for key, name in parts)
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        '<link rel="icon" href="data:,">'
        f"<title>{text(title)} – definetti</title><style>{style}</style>"
    )
    top = tag("header", tag("p", "definetti report", class_="soft") + tag("h1", text(title)) +
              tag("nav", tag("ul", links), aria_label="sections"), class_="top")  # fmt: skip
    foot = tag("footer", tag("p", "A page that is complete in itself: no network, no cookies."))
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{top}{tag("main", "".join(sections))}{foot}'
        f'<script type="application/json" id="data">{_embedded(data)}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _title(content: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    if content["run"].get("model"):
        return Path(str(content["run"]["model"])).name
    facts = kept.get("model")
    return f"{facts['kind']}, {show.large(facts['variables'])} variables" if facts else "An answer"


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _embedded(data: Any) -> str:
    """JSON that ends no element: < is spelled out."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


# --- verdict ---------------------------------------------------------------------------------------------------------


# --- marginals -------------------------------------------------------------------------------------------------------


# --- symmetry and convergence ----------------------------------------------------------------------------------------


# --- comparison ------------------------------------------------------------------------------------------------------


# --- model and reproduction ------------------------------------------------------------------------------------------
