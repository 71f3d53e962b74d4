"""Kernels as files: sizes refused, structures apart, names harmless."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import small_theories as th
from plain_kernels import plain_model

from definetti.errors import TooLarge
from definetti.samplers.codegen.cache import kernel_name, write_once
from definetti.samplers.codegen.module import module_text
from definetti.samplers.logic import engine


def test_too_large_is_refused_with_the_figure(monkeypatch):
    monkeypatch.setattr(engine, "available_memory", lambda: 1.25 * 10**9)
    with pytest.raises(TooLarge, match=r"needs [\d.]+ GB, the limit is 1 GB") as caught:
        plain_model(th.smokers(100_000), {})
    assert caught.value.size >= 2 * 10**10 / 8
    monkeypatch.setattr(engine, "available_memory", lambda: 10_000)
    with pytest.raises(TooLarge):
        plain_model(th.smokers(300), {})


def test_kernels_of_different_structure_have_different_files_and_of_equal_structure_one():
    def key(model, **options) -> str:
        r = plain_model(model, {}, **options)
        return kernel_name(module_text(r.written))

    heavier = replace(th.smokers(7), formulas=tuple(replace(f, weight=2 * f.weight) for f in th.smokers(7).formulas))
    same = {key(th.smokers(7)), key(th.smokers(9)), key(heavier), key(th.smokers(7), scan="random")}
    others = [th.smokers(7, hard=True), th.smokers(7, transitive=False), th.smokers(70), th.zoo(7)]
    different = {key(m) for m in others} | {key(th.smokers(7), short=0)}
    assert len(same) == 1 and len(different) == 5 and not same & different


def test_names_that_look_like_code_harm_nothing():
    evil = '");import os;os.abort()#\n'
    base = th.smokers(2)
    names = {"smokes": evil, "cancer": "__import__('os').abort()", "friends": "0 or d"}

    def renamed(f):
        match f:
            case th.Atom(p, args):
                return th.Atom(names[p], args)
            case th.Not(a):
                return th.Not(renamed(a))
            case th.And(parts):
                return th.And(tuple(map(renamed, parts)))
        return th.Implies(renamed(f.left), renamed(f.right))

    predicates = {names[k]: replace(p, name=names[k]) for k, p in base.predicates.items()}
    model = replace(
        base, predicates=predicates, formulas=tuple(replace(f, body=renamed(f.body)) for f in base.formulas)
    )
    one, other = (plain_model(m, {}) for m in (base, model))
    assert one.written.text == other.written.text
    assert "abort" not in module_text(other.written)


def test_a_spoiled_kernel_file_is_written_again(tmp_path):
    path = tmp_path / "k.py"
    write_once(path, "a = 1\n")
    before = path.stat().st_mtime_ns
    write_once(path, "a = 1\n")
    assert path.stat().st_mtime_ns == before
    path.write_text("a = 2\n")
    write_once(path, "a = 1\n")
    assert path.read_text() == "a = 1\n" and len(list(tmp_path.iterdir())) == 1


def test_generated_text_says_what_each_number_is():
    found = plain_model(th.zoo(5), {}, short=0).written
    looked_up = re.findall(r"^    (\w+) = peek\(numbers, (\d+)\)(.*)$", found.text, re.MULTILINE)
    assert {int(place) for _, place, _ in looked_up} == set(range(len(found.layout.numbers)))
    for name, place, comment in looked_up:
        number = found.layout.numbers[int(place)]
        assert (name, comment) == (number.name, f"  # {number.meaning}")
    for wanted in ("constants of sort 0", "rows of predicate 1 along argument 0", "weights of shape 4"):
        assert f"# {wanted}\n" in found.text
    names = [number.name for number in found.layout.numbers]
    assert len(set(names)) == len(names)
