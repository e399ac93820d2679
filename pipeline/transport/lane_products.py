r"""Products of a matrix with LANES columns side by side, compiled: what most of a network's training is.

Import this module only where it is used: it imports the compiler.

.. math:: o_{ri} \leftarrow o_{ri} + \sum_c w_{rc}\, x_{ci},

for o (R, LANES) and x (C, LANES), stored flat. A tile of o, ROWS of its rows and as many lanes as registers hold, stays
in registers while c runs over all columns of w; that is written in the compiler's own language, because no loop in
Python's says so. Each product and the sum that follows are rounded once, and c rises from 0: the numbers do not depend
on the tile, so not on the machine either.

Machine code on disk of what calls this knows nothing of a change here: change ``wgan_kernels`` with it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from pipeline.types import Array

LANES = 64
ROWS = 4
"""Of a tile. Matrices have a multiple of them."""
TILE_BYTES = 256 if binding.get_host_cpu_features().get("avx512f") else 64
"""Of one row of a tile: four registers of 512 bits each of 16, with the same number for w, or two of 256 each of 8."""
BYTE = ir.IntType(8)
INDEX = ir.IntType(32)

_njit: Any = njit
_intrinsic: Any = intrinsic
# Called by compiled code alone, so no door for Python is built.
compiled: Any = _njit(error_model="numpy", nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@compiled
def add_products(out: Array, weights: Array, x: Array) -> None:
    """out[r, i] += sum_c weights[r, c] x[c, i], for a multiple of ROWS rows r."""
    width = TILE_BYTES // out.itemsize
    for r in range(0, weights.shape[0], ROWS):
        for i in range(0, LANES, width):
            _add_to_tile(out, weights, x, r, i)


@_intrinsic
def _add_to_tile(typing: Any, out: Any, weights: Any, x: Any, r: Any, i: Any) -> Any:
    """out[r : r + ROWS, i : i + width] += weights[r : r + ROWS] x[:, i : i + width]."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args[:3], values[:3], strict=True)
        ]
        _Tile(context, builder, signature.args[0].dtype).add(*arrays, *values[3:])
        return context.get_dummy_value()

    return types.void(out, weights, x, r, i), generate


class _Tile:
    """Writes the tile's instructions with an ``ir.IRBuilder``."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.builder = builder
        self.size = dtype.bitwidth // 8
        self.width = TILE_BYTES // self.size
        self.number = context.get_value_type(dtype)
        self.row = ir.VectorType(self.number, self.width)
        name = f"llvm.fma.v{self.width}f{dtype.bitwidth}"
        self.fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(self.row, [self.row] * 3), name)

    def add(self, out: Any, weights: Any, x: Any, r: Any, i: Any) -> None:
        """Load the tile, loop over the columns of w, store the tile."""
        builder, size = self.builder, self.size
        count = r.type
        columns = cgutils.unpack_tuple(builder, weights.shape, 2)[1]
        down, across = cgutils.unpack_tuple(builder, weights.strides, 2)
        rows = [builder.add(r, count(k)) for k in range(ROWS)]
        first = builder.mul(i, count(size))
        places = [
            self._at(out.data, builder.add(builder.mul(row, count(LANES * size)), first), self.row) for row in rows
        ]
        lanes = self._at(x.data, first, BYTE)
        starts = [self._at(weights.data, builder.mul(row, down), BYTE) for row in rows]

        before = [builder.load(place, align=size) for place in places]
        entry, body, end = (builder.block, *(builder.append_basic_block(name) for name in ("columns", "columns.end")))
        builder.cbranch(builder.icmp_signed(">", columns, count(0)), body, end)

        builder.position_at_end(body)
        c = builder.phi(count)
        sums = [builder.phi(self.row) for _ in rows]
        values = builder.load(self._at(lanes, builder.mul(c, count(LANES * size)), self.row), align=size)
        offset = builder.mul(c, across)
        after = [
            builder.call(self.fma, [self._in_all_lanes(start, offset), values, so_far])
            for start, so_far in zip(starts, sums, strict=True)
        ]
        following = builder.add(c, count(1))
        for phi, at_first, later in zip([c, *sums], [count(0), *before], [following, *after], strict=True):
            phi.add_incoming(at_first, entry)
            phi.add_incoming(later, body)
        builder.cbranch(builder.icmp_signed("<", following, columns), body, end)

        builder.position_at_end(end)
        results = [builder.phi(self.row) for _ in rows]
        for phi, at_first, later in zip(results, before, after, strict=True):
            phi.add_incoming(at_first, entry)
            phi.add_incoming(later, body)
        for place, result in zip(places, results, strict=True):
            builder.store(result, place, align=size)

    def _at(self, pointer: Any, offset: Any, kind: Any) -> Any:
        """The address ``offset`` bytes on, as that of a ``kind``."""
        start = self.builder.bitcast(pointer, BYTE.as_pointer())
        return self.builder.bitcast(self.builder.gep(start, [offset]), kind.as_pointer())

    def _in_all_lanes(self, start: Any, offset: Any) -> Any:
        """The number ``offset`` bytes after ``start``, repeated."""
        nothing = ir.Constant(self.row, ir.Undefined)
        value = self.builder.load(self._at(start, offset, self.number), align=self.size)
        first = self.builder.insert_element(nothing, value, INDEX(0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INDEX, self.width), None))
