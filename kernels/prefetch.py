"""What a kernel will read soon, asked of memory before it is needed.

Replicas lie all over memory. A kernel that looks at one after the other waits for each, four times as long as the looking takes;
asked for some replicas ahead, it is there. This is what `kernels.compiled.ahead` is to the compiler; only time depends on it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kernels.compiled import ahead

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.core.types")
cgutils: Any = import_module("numba.core.cgutils")
extending: Any = import_module("numba.extending")

READ, NEAREST, DATA = 0, 3, 1  # as the instruction has it


@extending.type_callable(ahead)  # type: ignore[untyped-decorator]
def _type_of_ahead(_context: Any) -> Any:
    return lambda array, row: types.void


@extending.lower_builtin(ahead, types.Array, types.Integer)  # type: ignore[untyped-decorator]
def _ask(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    number, address = ir.IntType(32), ir.IntType(8).as_pointer()
    held = context.make_array(signature.args[0])(context, builder, given[0])
    at = builder.mul(context.cast(builder, given[1], signature.args[1], types.intp), builder.extract_value(held.strides, 0))
    kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(ask, [builder.gep(builder.bitcast(held.data, address), [at]), *(number(x) for x in (READ, NEAREST, DATA))])
    return context.get_dummy_value()
