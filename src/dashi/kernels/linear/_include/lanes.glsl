// What lies side by side, under the same names for floats and doubles. T4 is four elements; V is what the buffers hold,
// a vector where the shader declares one, elsewhere T: V_LANES elements.
#ifndef V
#define V T
#define V_LANES 1
#endif
#if T_IS_F64
#define T4 dvec4
#else
#define T4 vec4
#endif

// EACH_LANE(f, v)             the V of f of every element of a V
// LEAST_LANE(f, v)            the least f of its elements
// PUT_LANES(put, d, r, v)     puts the elements one by one, from d on, in r
// SET_LANES(four, at, v)      sets elements of a T4 from `at` on; at is 0 where V is as wide
// LANES_AT(four, at)          the V of those elements
#if V_LANES == 4
#define EACH_LANE(f, v) V(f(v.x), f(v.y), f(v.z), f(v.w))
#define LEAST_LANE(f, v) min(min(f(v.x), f(v.y)), min(f(v.z), f(v.w)))
#define PUT_LANES(put, d, r, v) \
    put(d, r, v.x); \
    put(d + 1u, r, v.y); \
    put(d + 2u, r, v.z); \
    put(d + 3u, r, v.w);
#define SET_LANES(four, at, v) four = v;
#define LANES_AT(four, at) four
#elif V_LANES == 2
#define EACH_LANE(f, v) V(f(v.x), f(v.y))
#define LEAST_LANE(f, v) min(f(v.x), f(v.y))
#define PUT_LANES(put, d, r, v) \
    put(d, r, v.x); \
    put(d + 1u, r, v.y);
#define SET_LANES(four, at, v) \
    four[at] = v.x; \
    four[at + 1u] = v.y;
#define LANES_AT(four, at) V(four[at], four[at + 1u])
#else
#define EACH_LANE(f, v) f(v)
#define LEAST_LANE(f, v) f(v)
#define PUT_LANES(put, d, r, v) put(d, r, v);
#define SET_LANES(four, at, v) four[at] = v;
#define LANES_AT(four, at) four[at]
#endif
