"""Who owns an array: kernels that count no references may only borrow them.

Numba refuses to compile a kernel that makes an array without counting references. But it does not see
one that hands out an array that it was lent, which its caller would free once too often, or one that is
handed an array to own, which nobody would free. Both are refused here.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.errors import TypingError
from numba.core.typed_passes import NopythonTypeInference


@register_pass(mutates_CFG=False, analysis_only=True)
class ArraysAreBorrowed(AnalysisPass):
    """Refuses a kernel that returns arrays, or calls one that does."""

    _name = "arrays_are_borrowed"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Look at what the kernel returns, and at what its callees do."""
        returned = {"the kernel": state.return_type}
        for call, signature in state.calltypes.items():
            callee = state.typemap[call.func.name] if getattr(call, "op", "") == "call" else None
            if isinstance(callee, types.Dispatcher):
                returned[callee.dispatcher.py_func.__name__] = signature.return_type
        for who, kind in returned.items():
            if state.targetctx.data_model_manager[kind].contains_nrt_meminfo():
                raise TypingError(f"{who} returns arrays; say compiled(allocates=True)")
        return False


class BorrowingCompiler(CompilerBase):
    """Numba's own, with that check."""

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(ArraysAreBorrowed, NopythonTypeInference)
        passes.finalize()
        return [passes]


BORROWING: dict[str, Any] = {"_nrt": False, "pipeline_class": BorrowingCompiler}
"""Options of `numba.njit` for a kernel that counts no references."""
