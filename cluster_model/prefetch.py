"""What a kernel will read soon, asked of memory before it is needed.

Replicas lie all over memory. A kernel that looks at one after the other waits for each, four times as long as the looking takes;
asked for some replicas ahead, it is there. `cluster_model.compiled` gives this to kernels; nothing but time depends on it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.core.types")
cgutils: Any = import_module("numba.core.cgutils")
extending: Any = import_module("numba.extending")

READ, NEAREST, DATA = 0, 3, 1  # as the instruction has it


@extending.intrinsic  # type: ignore[untyped-decorator]
def ahead(_typing: Any, array: Any, row: Any) -> Any:
    """Ask for the first bytes of `array[row]`, which has to exist."""
    number, address = ir.IntType(32), ir.IntType(8).as_pointer()

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, given[0])
        at = builder.mul(context.cast(builder, given[1], signature.args[1], types.intp), builder.extract_value(held.strides, 0))
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(ask, [builder.gep(builder.bitcast(held.data, address), [at]), *(number(x) for x in (READ, NEAREST, DATA))])
        return context.get_dummy_value()

    return types.void(array, row), generate
