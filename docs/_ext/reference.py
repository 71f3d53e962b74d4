"""The reference, made from the sources: commands, the Python API, the JSON schema, limits, explanations."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import definetti as dft
from definetti.cli.commands.explain import explanations
from definetti.cli.main import COMMANDS, definetti

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(str(dft.__file__)).parent


def commands(_: str) -> str:
    """Every command with its text, its arguments and a table of its options."""
    top = click.Context(definetti, info_name="definetti")
    return "\n\n".join(_command(definetti.get_command(top, name), top) for name in COMMANDS)  # type: ignore[attr-defined]


def _command(command: click.Command, above: click.Context) -> str:
    context = click.Context(command, info_name=command.name, parent=above)
    text, _, examples = inspect.cleandoc(command.help or "").replace("\b\n", "").partition("Examples:\n")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"({command.name}-command)=", f"## {context.command_path}", text.strip(), f"```text\n{usage}\n```"]
    if examples:
        lines.append(f"```text\n{textwrap.dedent(examples).rstrip()}\n```")
    records = [record for option in command.get_params(context) if (record := option.get_help_record(context))]
    rows = [[f"`{_flat(name)}`", _cell(said)] for name, said in records if said]
    lines.append(_table(["option", "meaning"], rows))
    return "\n\n".join(lines)


def api(kind: str) -> str:
    """Public functions, classes, samplers or errors, from their docstrings."""
    samplers = {entry.class_name for entry in dft.SAMPLERS.values()}
    chosen = {
        "functions": lambda value, name: inspect.isfunction(value),
        "errors": lambda value, name: inspect.isclass(value) and issubclass(value, Exception),
        "samplers": lambda value, name: name in samplers,
        "classes": lambda value, name: (
            inspect.isclass(value) and not issubclass(value, Exception) and name not in samplers
        ),
    }[kind]
    names = [name for name in dft.__all__ if chosen(getattr(dft, name), name)]
    return "\n\n".join(_entry(name, getattr(dft, name)) for name in names)


def _entry(name: str, value: Any) -> str:
    kind = "class-" if inspect.isclass(value) else ""
    lines = [f"(dft-{kind}{name.lower().replace('_', '-')})=", f"### `dft.{name}`"]
    if inspect.isfunction(value):
        lines.append(f"```python\n{_signature(f'dft.{name}', value)}\n```")
    lines += list(_docstring(inspect.getdoc(value) or ""))
    noun = inspect.isclass(value) and not issubclass(value, Exception) and not hasattr(value, "kinds")
    if noun:  # a sampler's methods are for the run alone
        lines += list(_members(value))
    return "\n\n".join(lines)


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    parts = [_plain(str(p)) for key, p in signature.parameters.items() if key != "self"]
    star = next((i for i, p in enumerate(signature.parameters.values()) if p.kind is p.KEYWORD_ONLY), None)
    if star is not None:
        parts.insert(star - ("self" in signature.parameters), "*")
    end = f" -> {_plain(str(signature.return_annotation))}" if signature.return_annotation is not inspect._empty else ""
    line = f"{name}({', '.join(parts)}){end}"
    return line if len(line) < 90 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def _plain(annotated: str) -> str:
    """Without the quotation marks of a postponed annotation; those of a default stay."""
    return re.sub(r"^(\**\w+: |)'(.*?)'(?= =|$)", r"\1\2", annotated)


def _members(value: type) -> Iterator[str]:
    rows = []
    for name, member in vars(value).items():
        target = member.fget if isinstance(member, property) else getattr(member, "func", member)
        text = inspect.getdoc(target) if callable(target) else None
        if name.startswith("_") or not text or text.startswith(f"{value.__name__}("):
            continue
        called = inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
        shown = f".{_signature(name, getattr(value, name))}" if called else f".{name}"
        rows.append([f"`{_flat(' '.join(shown.split()))}`", _cell(text.split("\n\n")[0])])
    if rows:
        yield _table(["member", "meaning"], rows)


def _docstring(text: str) -> Iterator[str]:
    """A docstring in NumPy's style as Markdown."""
    head, *sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    yield head.strip()
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Examples":
            yield f"```pycon\n{body.strip()}\n```"
        elif title == "Notes":
            yield body.strip()
        else:
            yield f"**{title}**"
            yield "\n".join(_fields(body))


def _fields(body: str) -> Iterator[str]:
    for block in re.split(r"\n(?=\S)", body.strip()):
        name, _, text = block.partition("\n")
        name, _, kind = name.partition(" : ")
        about = " ".join(textwrap.dedent(text).split())
        yield f"- `{name}`" + (f" ({kind})" if kind else "") + (f": {about}" if about else "")


def schema(_: str) -> str:
    """The fields of the JSON answer, by the path to them."""
    whole = json.loads((ROOT / "docs" / "result.schema.json").read_text(encoding="utf-8"))
    rows = [[f"`{path}`", kind, _cell(about)] for path, kind, about in _paths(whole, whole, "")]
    return _table(["field", "type", "meaning"], rows)


def _paths(node: dict[str, Any], whole: dict[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    if "$ref" in node:
        node = {**whole["$defs"][node["$ref"].rpartition("/")[2]], **node}
    if path:
        yield path, _type(node, whole), node.get("description", "")
    inner = node.get("additionalProperties")
    for key, below in node.get("properties", {}).items():
        yield from _paths(below, whole, f"{path}.{key}" if path else key)
    for below in inner.get("oneOf", []) if isinstance(inner, dict) else []:
        yield from _paths(below, whole, f"{path}[…]")
    if isinstance(node.get("items"), dict):
        for key, below in node["items"].get("properties", {}).items():
            yield from _paths(below, whole, f"{path}[].{key}")


def _type(node: dict[str, Any], whole: dict[str, Any]) -> str:
    if "$ref" in node and "type" not in node and "anyOf" not in node:
        return _type(whole["$defs"][node["$ref"].rpartition("/")[2]], whole)
    found = node.get("type", "true" if node.get("const") is True else "")
    options = [_type(one, whole) for key in ("anyOf", "oneOf") for one in node.get(key, [])]
    kinds = [*([found] if isinstance(found, str) else found), *options]
    return " or ".join(kind for kind in dict.fromkeys(kinds) if kind)


#: Names of constants that are limits of what is tried, and thresholds of what is trusted.
LIMIT = re.compile(r"(MOST|FEWEST|LIMIT|LARGEST|DEEPEST|WIDEST|CHAINS|SWEEPS|CHEAP|CONFIDENCE|FALSE_ALARM|APART)")


def limits(_: str) -> str:
    """Every constant of the sources whose name says that it is a limit and whose comment says of what."""
    rows = []
    for file in sorted(SOURCE.rglob("*.py")):
        lines = file.read_text(encoding="utf-8").splitlines()
        for node in ast.parse("\n".join(lines)).body:
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
                continue
            name, (_, _, about) = node.targets[0].id, lines[node.lineno - 1].partition("#")
            if (
                LIMIT.search(name)
                and about
                and not any(isinstance(n, ast.Name | ast.Call) for n in ast.walk(node.value))
            ):
                where = file.relative_to(SOURCE).with_suffix("").as_posix()
                rows.append([f"`{where}`", f"`{name}`", _number(node.value), _cell(about.lstrip(": "))])
    return _table(["module", "name", "value", "of what"], rows)


def _number(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return f"{value.value:,}"
    return ast.unparse(value).replace(" ** ", "^")


def defaults(_: str) -> str:
    """Every option of a command that has a default, with the commands that have it."""
    top, found = click.Context(definetti, info_name="definetti"), {}
    for name in COMMANDS:
        command = definetti.get_command(top, name)
        for option in command.params:
            value = option.default
            if isinstance(option, click.Option) and isinstance(value, str | int | float) and not option.is_flag:
                found.setdefault((option.opts[-1], str(value)), []).append(name)
            elif said := re.search(r"\[default: (.*?)\]", getattr(option, "help", None) or ""):
                found.setdefault((option.opts[-1], said.group(1)), []).append(name)
    rows = [[f"`{name}`", _cell(value), ", ".join(users)] for (name, value), users in found.items()]
    return _table(["option", "default", "commands"], rows)


def explain(name: str) -> str:
    """A section of `definetti explain`, under its own anchor."""
    return f"({name.lower()})=\n## {name}\n\n{explanations()[name]}\n"


def explain_errors(_: str) -> str:
    return "\n".join(explain(name) for name in explanations() if name[0].isupper())


def samplers(_: str) -> str:
    kinds = {"graph": "factor graphs", "logic": "Markov logic"}
    return _table(
        ["sampler", "class", "what it does", "runs on"],
        [
            [f"`{name}`", f"`dft.{entry.class_name}`", entry.help, " and ".join(kinds[kind] for kind in entry.kinds)]
            for name, entry in dft.SAMPLERS.items()
        ],
    )


def estimators(_: str) -> str:
    from definetti.estimators import ESTIMATORS

    return _table(["estimator", "what it is"], [[f"`{name}`", entry.help] for name, entry in ESTIMATORS.items()])


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split())).replace("[", r"\[").replace("<", r"\<")


def _flat(text: str) -> str:
    return text.replace("|", r"\|")


GENERATORS = {
    function.__name__: function
    for function in (commands, api, schema, limits, explain, explain_errors, samplers, estimators, defaults)
}
