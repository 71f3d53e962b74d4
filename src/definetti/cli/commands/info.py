"""`definetti info MODEL`: what the model is and how large, before any work is done on it."""

from __future__ import annotations

from typing import Any

import click

from definetti import show
from definetti.cli.options import Source, prints, reads_model
from definetti.cli.output import say, say_json


@click.command("info")
@reads_model
@prints
def command(source: Source, as_json: bool, quiet: bool) -> int:
    """What a model is: variables, factors, states, memory.

    \b
    Examples:
      definetti info examples/smokers.mln --domain person=1000
    """
    from definetti.model.facts import fact_rows, facts

    model, seconds = source.read()
    found = {"model": str(source.path), **facts(model), **engines_of(model), "seconds": {"read": seconds}}
    if as_json:
        say_json(found)
    else:
        say(show.pairs(fact_rows(found)))
    return 0


def engines_of(model: Any) -> dict[str, Any]:
    """Which engine sweeps over each predicate of a Markov logic network, and why; and what its chains take."""
    if model.kind != "logic":
        return {}
    from definetti.samplers.sparse.choice import engines

    found, memory = engines(model)
    return {"engines": found} | ({"memory_mb": {"state_of_one_chain": memory / 1e6}} if memory else {})
