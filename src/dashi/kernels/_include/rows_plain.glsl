// For kernels over rows that are written out: the functions of ops.glsl that rows.glsl needs.
#define flushed canon
#define apply op_maximum
#include "elementwise/maximum/kernel.comp"
#undef apply
#define apply op_minimum
#include "elementwise/minimum/kernel.comp"
#undef apply
#include "rows_joins.glsl"
#include "rows_operands.glsl"
