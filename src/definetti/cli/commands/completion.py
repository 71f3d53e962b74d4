"""`definetti completion SHELL`: the script that makes a shell complete commands, options and files."""

from __future__ import annotations

import click

from definetti.cli.options import Word
from definetti.cli.output import say

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=Word(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Completion of commands and options in a shell: bash, zsh or fish.

    \b
    Examples:
      definetti completion bash >> ~/.bashrc
      definetti completion zsh >> ~/.zshrc
      definetti completion fish > ~/.config/fish/completions/definetti.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    made = found(context.find_root().command, {}, "definetti", "_DEFINETTI_COMPLETE")
    say(made.source_template % made.source_vars())  # without asking the shell for its version: it may be elsewhere
    return 0
