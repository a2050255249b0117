"""Tuples of arrays that kernels pass on by their address.

numba passes a named tuple of arrays member by member, and each array as six words and more: some 300 for a problem and a state, written
again at every call, which took longer than many a kernel does. A `Reference` is one word: kernels read from the tuple what they use of
it. The tuple is laid out once, where Python calls a kernel, and stands there until that returns; no kernel writes to it. Kernels may read
its fields, pass it on and no more: they neither make one nor return one. `kernels.compiled` calls this; it knows no tuple.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import Any

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.core.types")
cgutils: Any = import_module("numba.core.cgutils")
extending: Any = import_module("numba.extending")
imputils: Any = import_module("numba.core.imputils")
templates: Any = import_module("numba.core.typing.templates")
typing_of: Any = import_module("numba.core.typing.typeof")

POINTER = ir.IntType(8).as_pointer()
WORD, WORDS = 8, 5  # bytes; what an array takes, beside an extent and a stride for each axis


class Reference(types.Type):  # type: ignore[misc]
    """The address of a tuple whose fields have these types, all of them arrays."""

    def __init__(self, kind: str, fields: tuple[str, ...], of: tuple[Any, ...]) -> None:
        self.fields, self.of = fields, of
        told = hashlib.sha256(repr((fields, [str(each) for each in of])).encode()).hexdigest()[:12]
        super().__init__(name=f"Reference({kind}-{told})")

    @property
    def key(self) -> tuple[object, ...]:
        return self.name, self.fields, self.of


def pass_by_reference(kind: Any) -> None:
    """Have tuples of the class `kind` passed so, as long as all their fields are arrays."""
    plain = typing_of.typeof_impl.dispatch(tuple)

    @typing_of.typeof_impl.register(kind)  # type: ignore[untyped-decorator]
    def type_of(value: Any, context: Any) -> Any:
        found = plain(value, context)
        if found is None or not all(isinstance(each, types.Array) for each in found):
            return found
        return Reference(kind.__name__, kind._fields, tuple(found))


@extending.register_model(Reference)
class Address(extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, POINTER)

    def from_argument(self, builder: Any, value: Any) -> Any:
        """What a kernel is given: all of it can be read at any time, so that what a loop reads is read before it."""
        if isinstance(value, ir.Argument):
            value.add_attribute("noalias")
            value.attributes.align = WORD
            value.attributes.dereferenceable = WORD * sum(WORDS + 2 * each.ndim for each in self.fe_type.of)
        return value


@extending.infer_getattr
class Fields(templates.AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:
        return kind.of[kind.fields.index(name)] if name in kind.fields else None


@extending.lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def read_field(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    """The array, of which only what is used is read in the end; what is read once holds until the kernel returns."""
    at = kind.fields.index(name)
    laid = layout(context, kind)
    there = cgutils.gep_inbounds(builder, builder.bitcast(value, laid.as_pointer()), 0, at)
    found = _read(builder, there, laid.elements[at])
    return imputils.impl_ret_borrowed(context, builder, kind.of[at], found)


def layout(context: Any, kind: Reference) -> Any:
    return ir.LiteralStructType([context.get_value_type(each) for each in kind.of])


def _read(builder: Any, pointer: Any, what: Any) -> Any:
    """The value of type `what`, word by word."""
    if isinstance(what, ir.Aggregate):
        found = ir.Constant(what, ir.Undefined)
        for i in range(len(what)):
            there = cgutils.gep_inbounds(builder, pointer, 0, i)
            found = builder.insert_value(found, _read(builder, there, there.type.pointee), i)
        return found
    word = builder.load(pointer)
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


@extending.unbox(Reference)  # type: ignore[untyped-decorator]
def lay_out(kind: Reference, given: Any, c: Any) -> Any:
    """The address of the tuple's arrays, laid out beside the call. Python holds them as long as the kernel runs, so no
    references are counted. The kernel must not become part of the code that calls it from Python, where what it reads is written."""
    c.builder.function.attributes.update(("noinline", "optnone"))
    room = cgutils.alloca_once(c.builder, layout(c.context, kind))
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    adapt = c.pyapi._get_function(ir.FunctionType(ir.IntType(32), [c.pyapi.pyobj, c.pyapi.voidptr]), name="numba_adapt_ndarray")
    for i in range(len(kind.of)):
        field = c.pyapi.tuple_getitem(given, i)
        array = cgutils.gep_inbounds(c.builder, room, 0, i)
        error = c.builder.call(adapt, [field, c.builder.bitcast(array, c.pyapi.voidptr)])
        with c.builder.if_then(cgutils.is_not_null(c.builder, error), likely=False):
            c.pyapi.err_set_string("PyExc_TypeError", "expected a tuple of arrays")
            c.builder.store(cgutils.true_bit, failed)
    return extending.NativeValue(c.builder.bitcast(room, POINTER), is_error=c.builder.load(failed))
