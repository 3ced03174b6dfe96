// One pass over arrays that are a whole number of vectors of 16 bytes, all of one shape: n counts vectors. Fused kernels
// replace `bring`, `apply` and `tail`, whose bodies here only show what goes where. All vectors of an invocation are read
// before the first is written: a result may be the same buffer as an input.
#include "ops.glsl"
#include "scalars.glsl"

struct Vectors {
    V x0, x1, x2, x3, x4, x5, x6, x7;
};

struct Values {
    T x0, x1, x2, x3, x4, x5, x6, x7;
};

struct Results {
    T y0, y1, y2, y3;
};

struct ResultVectors {
    V y0, y1, y2, y3;
};

V load0(uint j) {
    return in0[j];
}

V load1(uint j) {
    return in1[j];
}

V load2(uint j) {
    return in2[j];
}

V load3(uint j) {
    return in3[j];
}

V load4(uint j) {
    return in4[j];
}

V load5(uint j) {
    return in5[j];
}

V load6(uint j) {
    return in6[j];
}

V load7(uint j) {
    return in7[j];
}

void store0(uint j, V v) {
    out0[j] = v;
}

void store1(uint j, V v) {
    out1[j] = v;
}

void store2(uint j, V v) {
    out2[j] = v;
}

void store3(uint j, V v) {
    out3[j] = v;
}

Vectors bring(uint j) {
    return Vectors(load0(j), load1(j), load2(j), load3(j), load4(j), load5(j), load6(j), load7(j));
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

void tail(uint j, ResultVectors made) {
    store0(j, made.y0);
    store1(j, made.y1);
    store2(j, made.y2);
    store3(j, made.y3);
}

Results apply_lane(Vectors given, uint lane) {
    return apply(Values(
        flushed(given.x0[lane]), flushed(given.x1[lane]), flushed(given.x2[lane]), flushed(given.x3[lane]),
        flushed(given.x4[lane]), flushed(given.x5[lane]), flushed(given.x6[lane]), flushed(given.x7[lane])
    ));
}

ResultVectors apply_lanes(Vectors given) {
    Results a = apply_lane(given, 0u);
    Results b = apply_lane(given, 1u);
#if V_LANES == 4
    Results c = apply_lane(given, 2u);
    Results d = apply_lane(given, 3u);
#define JOIN(y) V(canon(a.y), canon(b.y), canon(c.y), canon(d.y))
#else
#define JOIN(y) V(canon(a.y), canon(b.y))
#endif
    return ResultVectors(JOIN(y0), JOIN(y1), JOIN(y2), JOIN(y3));
}

void main() {
    for (uint start = gl_WorkGroupID.x * LOCAL * EACH; start < n; start += stride) {
        uint first = start + gl_LocalInvocationID.x;
        Vectors given[EACH];
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            given[q] = bring(min(first + q * LOCAL, n - 1u));
        }
        [[unroll]] for (uint q = 0u; q < EACH; q++) {
            ResultVectors made = apply_lanes(given[q]);
            if (first + q * LOCAL < n) {
                tail(first + q * LOCAL, made);
            }
        }
    }
}
