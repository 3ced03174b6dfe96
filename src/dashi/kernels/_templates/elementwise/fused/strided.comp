// One pass over arrays of any strides: element i of the results has the coordinates of i in the shape SIZE0..SIZE7, and
// an input is read where OFFSET and its strides say. Fused kernels replace `bring`, `apply` and `tail`, as in flat.comp.
// Strides may be negative: numbers of 32 bits wrap round.
#include "ops.glsl"
#include "scalars.glsl"

struct Place {
    uint c0, c1, c2, c3, c4, c5, c6, c7;
};

struct Values {
    T x0, x1, x2, x3, x4, x5, x6, x7;
};

struct Results {
    T y0, y1, y2, y3;
};

// The last axis is the fastest.
Place place_of(uint i) {
    Place at;
    at.c7 = i % SIZE7;
    i /= SIZE7;
    at.c6 = i % SIZE6;
    i /= SIZE6;
    at.c5 = i % SIZE5;
    i /= SIZE5;
    at.c4 = i % SIZE4;
    i /= SIZE4;
    at.c3 = i % SIZE3;
    i /= SIZE3;
    at.c2 = i % SIZE2;
    i /= SIZE2;
    at.c1 = i % SIZE1;
    i /= SIZE1;
    at.c0 = i;
    return at;
}

T load0(Place at) {
    return in0[OFFSET0 + at.c0 * STRIDE0_0 + at.c1 * STRIDE0_1 + at.c2 * STRIDE0_2 + at.c3 * STRIDE0_3 +
                at.c4 * STRIDE0_4 + at.c5 * STRIDE0_5 + at.c6 * STRIDE0_6 + at.c7 * STRIDE0_7];
}

T load1(Place at) {
    return in1[OFFSET1 + at.c0 * STRIDE1_0 + at.c1 * STRIDE1_1 + at.c2 * STRIDE1_2 + at.c3 * STRIDE1_3 +
                at.c4 * STRIDE1_4 + at.c5 * STRIDE1_5 + at.c6 * STRIDE1_6 + at.c7 * STRIDE1_7];
}

T load2(Place at) {
    return in2[OFFSET2 + at.c0 * STRIDE2_0 + at.c1 * STRIDE2_1 + at.c2 * STRIDE2_2 + at.c3 * STRIDE2_3 +
                at.c4 * STRIDE2_4 + at.c5 * STRIDE2_5 + at.c6 * STRIDE2_6 + at.c7 * STRIDE2_7];
}

T load3(Place at) {
    return in3[OFFSET3 + at.c0 * STRIDE3_0 + at.c1 * STRIDE3_1 + at.c2 * STRIDE3_2 + at.c3 * STRIDE3_3 +
                at.c4 * STRIDE3_4 + at.c5 * STRIDE3_5 + at.c6 * STRIDE3_6 + at.c7 * STRIDE3_7];
}

T load4(Place at) {
    return in4[OFFSET4 + at.c0 * STRIDE4_0 + at.c1 * STRIDE4_1 + at.c2 * STRIDE4_2 + at.c3 * STRIDE4_3 +
                at.c4 * STRIDE4_4 + at.c5 * STRIDE4_5 + at.c6 * STRIDE4_6 + at.c7 * STRIDE4_7];
}

T load5(Place at) {
    return in5[OFFSET5 + at.c0 * STRIDE5_0 + at.c1 * STRIDE5_1 + at.c2 * STRIDE5_2 + at.c3 * STRIDE5_3 +
                at.c4 * STRIDE5_4 + at.c5 * STRIDE5_5 + at.c6 * STRIDE5_6 + at.c7 * STRIDE5_7];
}

T load6(Place at) {
    return in6[OFFSET6 + at.c0 * STRIDE6_0 + at.c1 * STRIDE6_1 + at.c2 * STRIDE6_2 + at.c3 * STRIDE6_3 +
                at.c4 * STRIDE6_4 + at.c5 * STRIDE6_5 + at.c6 * STRIDE6_6 + at.c7 * STRIDE6_7];
}

T load7(Place at) {
    return in7[OFFSET7 + at.c0 * STRIDE7_0 + at.c1 * STRIDE7_1 + at.c2 * STRIDE7_2 + at.c3 * STRIDE7_3 +
                at.c4 * STRIDE7_4 + at.c5 * STRIDE7_5 + at.c6 * STRIDE7_6 + at.c7 * STRIDE7_7];
}

void store0(uint i, T v) {
    out0[i] = v;
}

void store1(uint i, T v) {
    out1[i] = v;
}

void store2(uint i, T v) {
    out2[i] = v;
}

void store3(uint i, T v) {
    out3[i] = v;
}

Values bring(Place at) {
    return Values(load0(at), load1(at), load2(at), load3(at), load4(at), load5(at), load6(at), load7(at));
}

#ifdef TEXT
Results apply(Values v) {
    return Results(call_text(v.x0, v.x1, v.x2, v.x3, v.x4, v.x5, v.x6, v.x7), T(0), T(0), T(0));
}
#else
Results apply(Values v) {
    if (n == 0u) {
        v.x0 = every_op(every_scalar());
    }
    return Results(v.x0, v.x1, v.x2, v.x3);
}
#endif

void tail(uint i, Results made) {
    store0(i, made.y0);
    store1(i, made.y1);
    store2(i, made.y2);
    store3(i, made.y3);
}

Values flushed_values(Values v) {
    return Values(
        flushed(v.x0), flushed(v.x1), flushed(v.x2), flushed(v.x3), flushed(v.x4), flushed(v.x5), flushed(v.x6),
        flushed(v.x7)
    );
}

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * EACH; start < n; start += stride) {
        uint first = start + gl_LocalInvocationID.x;
        Values given[EACH];
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            given[q] = bring(place_of(min(first + q * LOCAL, n - 1u)));
        }
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            Results made = apply(flushed_values(given[q]));
            if (first + q * LOCAL < n) {
                tail(first + q * LOCAL, Results(canon(made.y0), canon(made.y1), canon(made.y2), canon(made.y3)));
            }
        }
    }
}
