"""Options that several commands share, each declared once."""

from __future__ import annotations

import math
import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from definetti.errors import suggestion
from definetti.files import ANSWER_SUFFIXES
from definetti.memory import limit_memory

FILE = click.Path(path_type=Path)


class Positive(click.ParamType):
    """A finite number above zero (`nan` compares with nothing, so click's own ranges let it pass)."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            self.fail(f"{value!r} is not a positive number", param, ctx)
        return number


class Size(click.ParamType):
    """Bytes: 500MB, 4G, 2.5GiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kMGT]?)(i?)B?", str(value).strip(), re.IGNORECASE)
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is no size; write 500MB or 4G", param, ctx)
        base = 1024 if match[3] else 1000
        return int(float(match[1]) * base ** " kmgt".index(match[2].lower() or " "))


def _limit(ctx: click.Context, param: click.Parameter, value: int | None) -> None:
    if value is not None:
        limit_memory(value)
        ctx.call_on_close(lambda: limit_memory(None))


class Word(click.Choice[str]):
    """One of a few words; a misspelt one is answered with the nearest."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"{value!r} is not one of {', '.join(self.choices)}{suggestion(str(value), self.choices, '')}"


class SamplerName(Word):
    """A sampler, or one around another (`orbital:mcsat`): these are many, so that only the help text speaks of them."""

    def __init__(self) -> None:
        from definetti.samplers import registry

        super().__init__([*registry.names(), *registry.wrapped()])
        self._plain = registry.names()

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(self._plain)}]"

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        return f"{value!r} is not one of {', '.join(self._plain)}{suggestion(str(value), self.choices, '')}"


@dataclass(frozen=True)
class Source:
    """Where the model comes from, as the command line says it."""

    path: Path
    evidence: tuple[Path, ...]
    domain: dict[str, int]
    open_world: tuple[str, ...]
    closed_world: tuple[str, ...]
    weights: str
    dialect: str = "auto"
    default_weight: float | None = None

    def read(self) -> tuple[Any, float]:
        """The model, and the seconds it took to read."""
        from definetti.readers.reading import read

        start = time.perf_counter()
        model = read(
            self.path,
            self.evidence[0] if len(self.evidence) == 1 else self.evidence or None,
            domain=self.domain or None,
            open_world=self.open_world,
            closed_world=self.closed_world,
            weights=self.weights,
            dialect=self.dialect,
            default_weight=self.default_weight,
        )
        return model, time.perf_counter() - start


def _names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for text in value for name in text.split(",") if name.strip())


def _sizes(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for text in _names(ctx, param, value):
        sort, _, size = text.partition("=")
        if not sort or not size.isdecimal() or int(size) < 1:
            raise click.BadParameter(f"{text!r} is not of the form person=100", ctx, param)
        sizes[sort] = int(size)
    return sizes


def destination(suffixes: tuple[str, ...], extra: str, *libraries: str) -> Callable[..., Path | None]:
    """A check of `-o`: refuse now what could not be written after the long work. What is not JSON or CSV or an array
    needs the libraries of an extra."""

    def check(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
        if value is None:
            return None
        if value.suffix not in suffixes:
            raise click.BadParameter(f"'{value}' must end in one of {', '.join(suffixes)}", ctx, param)
        plain = value.suffix in (".json", ".csv", ".npz", ".dft", *ANSWER_SUFFIXES[3:])
        missing = [] if plain else [name.replace("_", "-") for name in libraries if find_spec(name) is None]
        if missing:
            what = "Parquet" if value.suffix == ".parquet" else value.suffix
            raise click.BadParameter(
                f"{what} needs {' and '.join(missing)}: pip install 'definetti[{extra}]'", ctx, param
            )
        if value.is_dir() or (value.exists() and not os.access(value, os.W_OK)):
            raise click.BadParameter(f"'{value}' cannot be written", ctx, param)
        try:
            tempfile.TemporaryFile(dir=value.parent).close()
        except OSError as error:
            raise click.BadParameter(f"'{value.parent}' cannot be written to: {error.strerror}", ctx, param) from None
        return value

    return check


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; `--help` shows them in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def reads_model(function: Callable[..., int]) -> Callable[..., int]:
    """MODEL and what belongs to reading it, handed on as one `Source`."""

    @wraps(function)
    def call(path: Path, **others: Any) -> int:
        mine = {field.name: others.pop(field.name) for field in fields(Source) if field.name != "path"}
        return function(Source(path, **mine), **others)

    options = together(
        click.argument("path", metavar="MODEL", type=FILE),
        click.option(
            "--evidence",
            type=FILE,
            multiple=True,
            help="Observed values: .evid beside .uai and .fg, .db beside .mln (several: --evidence A --evidence B).",
        ),
        click.option("--domain", multiple=True, callback=_sizes, metavar="SORT=N", help="Size of a sort: person=100."),
        click.option("--open-world", multiple=True, callback=_names, metavar="P,Q", help="Predicates left unknown."),
        click.option(
            "--closed-world",
            multiple=True,
            callback=_names,
            metavar="P,Q",
            help="Predicates that are false where the evidence is silent.",
        ),
        click.option(
            "--weights",
            type=Word(["formula", "alchemy"]),
            default="formula",
            show_default=True,
            help="A weight counts per formula, or is split over its clauses.",
        ),
        click.option(
            "--dialect",
            type=Word(["auto", "alchemy", "tuffy", "pracmln"]),
            default="auto",
            show_default=True,
            help="The dialect of an .mln file; recognised, and said in the output.",
        ),
        click.option(
            "--default-weight", type=float, metavar="W", help="The weight of formulas that have none (structures)."
        ),
    )
    return options(call)


quiet = click.option("--quiet", is_flag=True, help="No progress on stderr.")

dask = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Advance chains on the workers of this Dask cluster, such as tcp://scheduler:8786.",
)

max_memory = click.option(
    "--max-memory",
    type=Size(),
    metavar="SIZE",
    expose_value=False,
    callback=_limit,
    help="Refuse what would take this process beyond SIZE (4G, 500MB).  [default: what is available]",
)

prints = together(
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."),
    quiet,
)


def answers_in(suffixes: tuple[str, ...], more: str = "") -> Decorator:
    """What is asked, and where the answer goes."""
    formats = "Also write the answer here: .json, .csv, .parquet, .result (Alchemy) or .MAR (UAI)."
    check = destination(suffixes, "parquet", "pyarrow")
    return together(
        click.option(
            "--world",
            type=Word(["open", "alchemy"]),
            default="open",
            show_default=True,
            help="alchemy: predicates with evidence that no query names are false where the evidence is silent.",
        ),
        click.option(
            "--query",
            "queries",
            multiple=True,
            metavar="Q",
            help="A variable, an atom, a formula (X1=0 ^ X7=2), A | B, #Smokes: docs/queries.md.",
        ),
        click.option("--formulas", is_flag=True, help="Also the expected number of true groundings of every formula."),
        click.option("-o", "output", type=FILE, callback=check, help=formats + more),
    )


answers = answers_in(ANSWER_SUFFIXES)

symmetry = together(
    click.option(
        "--symmetries",
        "kind",
        type=Word(["auto", "none", "variables", "literals", "theory", "renaming"]),
        default="auto",
        show_default=True,
        help="Which symmetries to look for.",
    ),
    click.option("--generators", type=FILE, help="The group, given: a permutation per line, (X0 X1)(X2 X3)."),
    click.option(
        "--time-limit",
        type=Positive(),
        default=10.0,
        show_default=True,
        metavar="S",
        help="Stop the search for symmetries after S seconds.",
    ),
)
