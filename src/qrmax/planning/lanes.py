"""Four numbers side by side, in one register of the processor, for compiled code.

    load(array, at)    array[at], ..., array[at + 3] of a flat array
    fill(x)            x, four times
    add, sub, mul      for each of the four
    least(a, b)        the lesser for each of the four
    root(a)            square roots
    part(a, i)         one of the four
    largest(a)         the largest of the four

Numba does not combine equal operations on neighbours into one (LLVM's SLP vectoriser is off, for
good reasons), so these are LLVM's vector instructions themselves. Each of the four has the rounding
of a single number: results are the same, bit for bit. Without compilation, NumPy stands in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import intrinsic, register_model

LANES = 4
"""Numbers side by side."""

_config: Any = config  # whose types do not know its fields
_VECTOR: Any = ir.VectorType(ir.DoubleType(), LANES)
_INDEX: Any = ir.IntType(32)


class Lanes(types.Type):
    """The type of four numbers, in numba."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@register_model(Lanes)
class _LanesModel(PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


_lanes: Any = Lanes()
_float: Any = types.float64


@intrinsic
def _load(_: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        place = builder.bitcast(builder.gep(data, [values[1]]), _VECTOR.as_pointer())
        return builder.load(place, align=8)

    return _lanes(array, at), generate


@intrinsic
def _fill(_: Any, x: Any) -> Any:  # noqa: ARG001 (numba reads its name)
    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, values[0], _INDEX(0))
        every = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        return builder.shuffle_vector(first, nothing, every)

    return _lanes(_float), generate


def _of_two(instruction: str) -> Any:
    def operation(_: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
            return getattr(builder, instruction)(*values)

        return _lanes(_lanes, _lanes), generate

    return intrinsic(operation)


@intrinsic
def _least(_: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *values), *values)

    return _lanes(_lanes, _lanes), generate


@intrinsic
def _root(_: Any, a: Any) -> Any:  # noqa: ARG001
    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        sqrt = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f64")
        return builder.call(sqrt, values)

    return _lanes(_lanes), generate


@intrinsic
def _part(_: Any, a: Any, i: Any) -> Any:  # noqa: ARG001
    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return builder.extract_element(*values)

    return _float(_lanes, i), generate


@intrinsic
def _largest(_: Any, a: Any) -> Any:  # noqa: ARG001
    def generate(_: Any, builder: Any, __: Any, values: Any) -> Any:
        found = [builder.extract_element(values[0], _INDEX(i)) for i in range(LANES)]
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [builder.select(builder.fcmp_ordered(">", a, b), a, b) for a, b in pairs]
        return found[0]

    return _float(_lanes), generate


_numpys: dict[str, Any] = {
    "load": lambda array, at: array[int(at) : int(at) + LANES].copy(),
    "fill": lambda x: np.full(LANES, x),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "least": lambda a, b: np.where(a < b, a, b),
    "root": np.sqrt,
    "part": lambda a, i: a[i],
    "largest": np.max,
}
_compiled: dict[str, Any] = {
    "load": _load,
    "fill": _fill,
    "add": _of_two("fadd"),
    "sub": _of_two("fsub"),
    "mul": _of_two("fmul"),
    "least": _least,
    "root": _root,
    "part": _part,
    "largest": _largest,
}
_here = _numpys if _config.DISABLE_JIT else _compiled

load, fill, add, sub, mul = (_here[name] for name in ("load", "fill", "add", "sub", "mul"))
least, root, part, largest = (_here[name] for name in ("least", "root", "part", "largest"))
