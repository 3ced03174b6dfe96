// Kernels over rows: reductions, and maps that see the reduced values of their row. A kernel's file includes ops.glsl,
// rows_joins.glsl and rows_operands.glsl, then this after it has defined
//     T head(Place at)                            the value of an element, made of the inputs there
//     T first(T value)                            what the first reduction joins
//     T start0(), T join0(T a, T b)               how (rows_joins.glsl)
//     T settle0(T total)                          r0, made of what was joined
//     T moved(T value, T r0)                      the value of an element from then on, if STAGES is 2
//     T second(T value), T start1(), T join1(T a, T b), T settle1(T total, T r0)      the second reduction and r1, likewise
//     void tail(Place at, T value, T r0, T r1)    writes results: of an element if MAPS is 1, else of the row
// With PLACES only head and first count: the result of a row is where the largest is. Values that these functions take
// are canonical, but for a NaN, which may be any; tail makes results canonical. Rows are worked through by teams (STAGED:
// rows_staged.glsl) or by single invocations (rows_runs.glsl); the order of every sum is the same, tree64 along the row.
// Push constants: n elements in each of `rows` rows, blocks of rows from first_block up to beyond in steps of stride.
#include "rows_order.glsl"
#ifdef STAGED
#include "rows_staged.glsl"
#else
#include "rows_runs.glsl"
#endif
