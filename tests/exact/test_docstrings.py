"""Every public name has a docstring in NumPy's style with an example that runs, and functions have types."""

from __future__ import annotations

import doctest
import inspect

import pytest

import definetti as dft

NAMES = [name for name in dft.__all__ if name not in ("errors", "__version__")]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(dft, name))]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(dft, name))]


def test_all_names_are_functions_or_classes() -> None:
    assert sorted(NAMES) == sorted(FUNCTIONS + CLASSES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_types_and_sections(name: str) -> None:
    function = getattr(dft, name)
    signature = inspect.signature(function)
    hints = {key: str(parameter.annotation) for key, parameter in signature.parameters.items()}
    hints["return"] = str(signature.return_annotation)
    assert not [key for key, hint in hints.items() if "_empty" in hint or "Any" in hint]
    text = inspect.getdoc(function) or ""
    for section in ("Parameters", "Returns", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text, section
    described = text.split("\nParameters\n")[1].split("\nReturns\n")[0]
    for key in signature.parameters:
        assert key in described, f"{key} is not described"


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_an_example(name: str) -> None:
    assert "\nExamples\n--------\n>>> " in (inspect.getdoc(getattr(dft, name)) or "")


@pytest.mark.parametrize("name", CLASSES)
def test_methods_and_properties_have_a_docstring(name: str) -> None:
    """Those of samplers are how the engine runs them: `samplers/protocol.py` describes them once."""
    if hasattr(getattr(dft, name), "kinds"):
        return
    members = {key: getattr(value, "fget", None) or getattr(value, "func", None) or value
               for key, value in vars(getattr(dft, name)).items() if not key.startswith("_")}  # fmt: skip
    assert not [key for key, value in members.items() if inspect.isfunction(value) and not inspect.getdoc(value)]


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    found = [test for test in doctest.DocTestFinder().find(getattr(dft, name), name) if test.examples]
    assert found
    said: list[str] = []
    for test in found:
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
