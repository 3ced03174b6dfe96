// Where the operands of a kernel over rows lie. A row is a choice of the axes that stay, of lengths ROWS1..ROWS4 but the
// first, and its elements are counted over the axes that go, AXIS1 and AXIS2 but the first, the last of each the fastest.
// An input is read where OFFSET and its strides say, five for the row and three for the element; results are written
// where the strides RESULT0..RESULT7 say. Strides may be negative: numbers of 32 bits wrap round.
struct Place {
    uint r0, r1, r2, r3, r4, c0, c1, c2;
};

Place place_of(uint row, uint i) {
    Place at;
    at.r4 = row % ROWS4;
    row /= ROWS4;
    at.r3 = row % ROWS3;
    row /= ROWS3;
    at.r2 = row % ROWS2;
    row /= ROWS2;
    at.r1 = row % ROWS1;
    at.r0 = row / ROWS1;
    at.c2 = i % AXIS2;
    i /= AXIS2;
    at.c1 = i % AXIS1;
    at.c0 = i / AXIS1;
    return at;
}

uint place_of_result(Place at) {
    return at.r0 * RESULT0 + at.r1 * RESULT1 + at.r2 * RESULT2 + at.r3 * RESULT3 + at.r4 * RESULT4 + at.c0 * RESULT5 +
           at.c1 * RESULT6 + at.c2 * RESULT7;
}

#ifdef PLACES
#define RESULT uint
#else
#define RESULT T
#endif

#if INPUTS > 0
T load0(Place at) {
    return in0[OFFSET0 + at.r0 * STRIDE0_0 + at.r1 * STRIDE0_1 + at.r2 * STRIDE0_2 + at.r3 * STRIDE0_3 +
                at.r4 * STRIDE0_4 + at.c0 * STRIDE0_5 + at.c1 * STRIDE0_6 + at.c2 * STRIDE0_7];
}
#endif

#if INPUTS > 1
T load1(Place at) {
    return in1[OFFSET1 + at.r0 * STRIDE1_0 + at.r1 * STRIDE1_1 + at.r2 * STRIDE1_2 + at.r3 * STRIDE1_3 +
                at.r4 * STRIDE1_4 + at.c0 * STRIDE1_5 + at.c1 * STRIDE1_6 + at.c2 * STRIDE1_7];
}
#endif

#if INPUTS > 2
T load2(Place at) {
    return in2[OFFSET2 + at.r0 * STRIDE2_0 + at.r1 * STRIDE2_1 + at.r2 * STRIDE2_2 + at.r3 * STRIDE2_3 +
                at.r4 * STRIDE2_4 + at.c0 * STRIDE2_5 + at.c1 * STRIDE2_6 + at.c2 * STRIDE2_7];
}
#endif

#if INPUTS > 3
T load3(Place at) {
    return in3[OFFSET3 + at.r0 * STRIDE3_0 + at.r1 * STRIDE3_1 + at.r2 * STRIDE3_2 + at.r3 * STRIDE3_3 +
                at.r4 * STRIDE3_4 + at.c0 * STRIDE3_5 + at.c1 * STRIDE3_6 + at.c2 * STRIDE3_7];
}
#endif

#if INPUTS > 4
T load4(Place at) {
    return in4[OFFSET4 + at.r0 * STRIDE4_0 + at.r1 * STRIDE4_1 + at.r2 * STRIDE4_2 + at.r3 * STRIDE4_3 +
                at.r4 * STRIDE4_4 + at.c0 * STRIDE4_5 + at.c1 * STRIDE4_6 + at.c2 * STRIDE4_7];
}
#endif

#if INPUTS > 5
T load5(Place at) {
    return in5[OFFSET5 + at.r0 * STRIDE5_0 + at.r1 * STRIDE5_1 + at.r2 * STRIDE5_2 + at.r3 * STRIDE5_3 +
                at.r4 * STRIDE5_4 + at.c0 * STRIDE5_5 + at.c1 * STRIDE5_6 + at.c2 * STRIDE5_7];
}
#endif

#if INPUTS > 6
T load6(Place at) {
    return in6[OFFSET6 + at.r0 * STRIDE6_0 + at.r1 * STRIDE6_1 + at.r2 * STRIDE6_2 + at.r3 * STRIDE6_3 +
                at.r4 * STRIDE6_4 + at.c0 * STRIDE6_5 + at.c1 * STRIDE6_6 + at.c2 * STRIDE6_7];
}
#endif

#if INPUTS > 7
T load7(Place at) {
    return in7[OFFSET7 + at.r0 * STRIDE7_0 + at.r1 * STRIDE7_1 + at.r2 * STRIDE7_2 + at.r3 * STRIDE7_3 +
                at.r4 * STRIDE7_4 + at.c0 * STRIDE7_5 + at.c1 * STRIDE7_6 + at.c2 * STRIDE7_7];
}
#endif

#if OUTPUTS > 0
void store0(Place at, RESULT v) {
    out0[place_of_result(at)] = v;
}
#endif

#if OUTPUTS > 1
void store1(Place at, RESULT v) {
    out1[place_of_result(at)] = v;
}
#endif

#if OUTPUTS > 2
void store2(Place at, RESULT v) {
    out2[place_of_result(at)] = v;
}
#endif

#if OUTPUTS > 3
void store3(Place at, RESULT v) {
    out3[place_of_result(at)] = v;
}
#endif
