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

#define LOAD(K) \
    T load##K(Place at) { \
        return in##K[OFFSET##K + at.r0 * STRIDE##K##_0 + at.r1 * STRIDE##K##_1 + at.r2 * STRIDE##K##_2 + \
                     at.r3 * STRIDE##K##_3 + at.r4 * STRIDE##K##_4 + at.c0 * STRIDE##K##_5 + at.c1 * STRIDE##K##_6 + \
                     at.c2 * STRIDE##K##_7]; \
    }

#define STORE(K) \
    void store##K(Place at, RESULT v) { \
        out##K[place_of_result(at)] = v; \
    }

#if INPUTS > 0
LOAD(0)
#endif
#if INPUTS > 1
LOAD(1)
#endif
#if INPUTS > 2
LOAD(2)
#endif
#if INPUTS > 3
LOAD(3)
#endif
#if INPUTS > 4
LOAD(4)
#endif
#if INPUTS > 5
LOAD(5)
#endif
#if INPUTS > 6
LOAD(6)
#endif
#if INPUTS > 7
LOAD(7)
#endif
#if OUTPUTS > 0
STORE(0)
#endif
#if OUTPUTS > 1
STORE(1)
#endif
#if OUTPUTS > 2
STORE(2)
#endif
#if OUTPUTS > 3
STORE(3)
#endif
