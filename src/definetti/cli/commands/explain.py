"""`definetti explain NAME`: what a kind of warning or a class of error means, and what to do, as the docs have it."""

from __future__ import annotations

import re
from importlib.resources import files

import click

from definetti.cli.output import say
from definetti.errors import suggestion


@click.command("explain")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def command(names: tuple[str, ...]) -> int:
    """What a kind of warning or a class of error means, and what to do: the NAME that a message names.

    \b
    Examples:
      definetti explain not-mixed
      definetti explain ParseError
    """
    texts = explanations()
    for name in names:
        if name not in texts:
            raise click.BadParameter(f"there is no {name!r}{suggestion(name, texts)}", param_hint="NAME")
    say("\n\n".join(f"{name}\n\n{texts[name]}" for name in names))
    return 0


def explanations() -> dict[str, str]:
    """The sections of explanations.md by their titles."""
    text = files("definetti.cli.commands").joinpath("explanations.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (\S+)\n", text, flags=re.MULTILINE)
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}
