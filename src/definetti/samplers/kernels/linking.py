"""Compiles what only other compiled code calls: it becomes machine code with its callers, and nowhere else.

Numba optimises every function as if it stood alone and makes machine code of it, which nobody calls: callers link its
LLVM code in and are optimised whole. Without that, a kernel's fixed text takes a quarter less time to compile.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.compiler import Compiler


class Linked(Compiler):
    """Numba's pipeline (`pipeline_class`) into a library without machine code."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if self.state.library is None:
            self.state.library = library_to_link(self.state.targetctx.codegen())


class Whole(Compiler):
    """Numba's pipeline for what links such libraries: optimised once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if self.state.library is None:
            self.state.library = self.state.targetctx.codegen().create_library("whole")
            self.state.library.enable_object_caching()
            optimise_once(self.state.library)


def optimise_once(library: Any) -> None:
    """Numba optimises each function, then the module cheaply, then the module whole; the last is enough here."""

    def lay_out(module: Any) -> None:
        module.data_layout = library._codegen._data_layout

    def whole() -> None:
        passes, builder = library._codegen._module_pass_manager(slp_vectorize=False)
        passes.run(library._final_module, builder)

    library._optimize_functions, library._optimize_final_module = lay_out, whole


def library_to_link(codegen: Any) -> Any:
    library = codegen.create_library("linked")
    library.enable_object_caching()
    finish = library._finalize_final_module

    def finalize() -> None:
        module = library._final_module
        for function in module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"  # several callers have it
        library._shared_module = module
        library._final_module = llvm.parse_assembly(environments(codegen, module))
        finish()

    library._optimize_final_module = lambda: None
    library._finalize_final_module = finalize
    return library


def environments(codegen: Any, module: Any) -> str:
    """A module with nothing but the variables through which Numba hands a function its globals."""
    lines = [str(x) for x in module.global_variables if x.name.startswith("_ZN08NumbaEnv")]
    return "\n".join([str(codegen._create_empty_module("environments")), *lines])
