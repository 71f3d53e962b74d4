"""Kernels as files: sizes refused, structures apart, folders private, names harmless."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
import relational_theories as th

from definetti.errors import TooLarge
from definetti.samplers.codegen import module as relational_module
from definetti.samplers.codegen.cache import file_name, private, write_once
from definetti.samplers.codegen.module import module_text
from definetti.samplers.logic.engine import compile_model


def test_too_large_is_refused_with_the_figure():
    with pytest.raises(TooLarge, match=r"needs [\d.]+ GB, the limit is 1 GB") as caught:
        compile_model(th.smokers(100_000), {}, memory=10**9)
    assert caught.value.size >= 2 * 10**10 / 8
    with pytest.raises(TooLarge):
        compile_model(th.smokers(300), {}, memory=10_000, plain=True)


def test_kernels_of_different_structure_have_different_files_and_of_equal_structure_one():
    def key(model, **options) -> str:
        r = compile_model(model, {}, plain=True, **options)
        return file_name(module_text(r.written), repr(r.theory))

    heavier = replace(th.smokers(7), formulas=tuple(replace(f, weight=2 * f.weight) for f in th.smokers(7).formulas))
    same = {key(th.smokers(7)), key(th.smokers(9)), key(heavier)}
    others = [th.smokers(7, hard=True), th.smokers(7, transitive=False), th.smokers(70), th.zoo(7)]
    different = {key(m) for m in others} | {key(th.smokers(7), scan="random"), key(th.smokers(7), short=0)}
    assert len(same) == 1 and len(different) == 6 and not same & different


def test_a_kernel_names_the_runtime_that_is_compiled_into_it():
    runtime = relational_module.RUNTIME.read_text(encoding="utf-8")
    whole = "".join(runtime.split(relational_module.MARK)).encode()
    written = compile_model(th.smokers(7), {}, plain=True).written
    assert f"# runtime: {sha256(whole).hexdigest()}\n" in module_text(written)
    assert "import" in module_text(written) and "relational_runtime" not in module_text(written, plain=True)


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
    one, other = (compile_model(m, {}, plain=True) for m in (base, model))
    assert one.written.text == other.written.text
    assert "abort" not in module_text(other.written)


def test_the_kernel_folder_is_private(tmp_path):
    folder = tmp_path / "kernels"
    assert private(folder) and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert not private(folder)
    (tmp_path / "file").write_text("")
    assert not private(tmp_path / "file")


def test_a_spoiled_kernel_file_is_written_again(tmp_path):
    path = tmp_path / "k.py"
    write_once(path, "a = 1\n")
    before = path.stat().st_mtime_ns
    write_once(path, "a = 1\n")
    assert path.stat().st_mtime_ns == before
    path.write_text("a = 2\n")
    write_once(path, "a = 1\n")
    assert path.read_text() == "a = 1\n" and len(list(tmp_path.iterdir())) == 1
