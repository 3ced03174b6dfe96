// The functions that fused kernels are made of: the applies of kernels of the elementwise family, each under a name of
// its own. Values are canonical, but for a NaN, which may be any until it is stored.
// Integers wrap round, and every integer is canonical.
#ifdef INTEGER
#ifndef INTEGER_BITS
#define INTEGER_BITS 32
#endif

T canon(T v) {
    return v;
}

T flushed(T v) {
    return v;
}

T mul(T a, T b) {
    return a * b;
}

bool is_nan_bits(T v) {
    return false;
}
#else
T flushed(T v) {
#if T_IS_F64
    uvec2 bits = unpackDouble2x32(v);
    return packDouble2x32((bits.y & 0x7fffffffu) < F64_TINY_HIGH ? uvec2(0u) : bits);
#else
    uint bits = floatBitsToUint(v);
    return uintBitsToFloat((bits & 0x7fffffffu) < F32_TINY ? 0u : bits);
#endif
}
#endif

#define apply op_add
#include "elementwise/add/kernel.comp"
#undef apply
#define apply op_maximum
#include "elementwise/maximum/kernel.comp"
#undef apply
#define apply op_minimum
#include "elementwise/minimum/kernel.comp"
#undef apply
#define apply op_mul
#include "elementwise/mul/kernel.comp"
#undef apply
#define apply op_neg
#include "elementwise/neg/kernel.comp"
#undef apply
#define apply op_relu
#include "elementwise/relu/kernel.comp"
#undef apply
#define apply op_sign
#include "elementwise/sign/kernel.comp"
#undef apply
#define apply op_square
#include "elementwise/square/kernel.comp"
#undef apply
#define apply op_sub
#include "elementwise/sub/kernel.comp"
#undef apply
#ifndef INTEGER
#define apply op_abs
#include "elementwise/abs/kernel.comp"
#undef apply
#define apply op_cos
#include "elementwise/cos/kernel.comp"
#undef apply
#define apply op_div
#include "elementwise/div/kernel.comp"
#undef apply
#define apply op_exp
#include "elementwise/exp/kernel.comp"
#undef apply
#define apply op_log
#include "elementwise/log/kernel.comp"
#undef apply
#define apply op_reciprocal
#include "elementwise/reciprocal/kernel.comp"
#undef apply
#define apply op_rsqrt
#include "elementwise/rsqrt/kernel.comp"
#undef apply
#define apply op_sigmoid
#include "elementwise/sigmoid/kernel.comp"
#undef apply
#define apply op_sin
#include "elementwise/sin/kernel.comp"
#undef apply
#define apply op_softplus
#include "elementwise/softplus/kernel.comp"
#undef apply
#define apply op_sqrt
#include "elementwise/sqrt/kernel.comp"
#undef apply
#define apply op_tanh
#include "elementwise/tanh/kernel.comp"
#undef apply
#define apply op_atan
#include "elementwise/atan/kernel.comp"
#undef apply
#define apply op_atan2
#include "elementwise/atan2/kernel.comp"
#undef apply
#define apply op_ceil
#include "elementwise/ceil/kernel.comp"
#undef apply
#define apply op_erf
#include "elementwise/erf/kernel.comp"
#undef apply
#define apply op_floor
#include "elementwise/floor/kernel.comp"
#undef apply
#define apply op_pow
#include "elementwise/pow/kernel.comp"
#undef apply
#define apply op_round
#include "elementwise/round/kernel.comp"
#undef apply
#define apply op_trunc
#include "elementwise/trunc/kernel.comp"
#undef apply
#endif
#include "_templates/elementwise/fused/choices.glsl"
#ifdef INTEGER
#include "_templates/elementwise/fused/integers.glsl"
#endif

// The compiler drops what is not called: this calls every function, and the stubs of `apply` call this.
T every_op(T x) {
    x = op_add(x, x);
    x = op_maximum(x, x);
    x = op_minimum(x, x);
    x = op_mul(x, x);
    x = op_neg(x);
    x = op_relu(x);
    x = op_sign(x);
    x = op_square(x);
    x = op_sub(x, x);
    x = every_choice(x);
#ifdef INTEGER
    x = every_integer_op(x);
#else
    x = op_abs(x);
    x = op_atan(x);
    x = op_atan2(x, x);
    x = op_ceil(x);
    x = op_cos(x);
    x = op_div(x, x);
    x = op_erf(x);
    x = op_exp(x);
    x = op_floor(x);
    x = op_log(x);
    x = op_pow(x, x);
    x = op_reciprocal(x);
    x = op_round(x);
    x = op_rsqrt(x);
    x = op_sigmoid(x);
    x = op_sin(x);
    x = op_softplus(x);
    x = op_sqrt(x);
    x = op_tanh(x);
    x = op_trunc(x);
#endif
    return flushed(x);
}
