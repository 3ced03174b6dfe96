// The rate of z' = z + dt (z L + Q(z, z) + f): list 0 of an output is a column of L, list 1 its triads.
#include "csr_entries.glsl"
#include "triad_entries.glsl"

const uint LINEAR = 0u;
const uint TRIADS = 1u;

T advanced(uint out_at, T linear, T quadratic) {
    T rate = canon((linear + quadratic) + canon(force[out_at]));
    return state_value(out_at) + mul(canon(dt), rate);
}
