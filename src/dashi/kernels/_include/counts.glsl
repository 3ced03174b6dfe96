// Exact counts over a whole list, in two passes: every workgroup adds what its invocations counted, then one workgroup
// adds those sums, any number of them, in 64 bits. The order does not matter: they are integers.
#ifndef COUNTS_GLSL
#define COUNTS_GLSL

const uint MEMBERS = 256u;
shared uint counted[MEMBERS];
shared uvec2 added[MEMBERS];

// The sum over the workgroup, for its first invocation. All invocations call it together.
uint count_together(uint own) {
    uint me = gl_LocalInvocationIndex;
    counted[me] = own;
    barrier();
    for (uint reach = MEMBERS / 2u; reach > 0u; reach >>= 1) {
        if (me < reach) {
            counted[me] += counted[me + reach];
        }
        barrier();
    }
    uint total = counted[0];
    barrier();
    return total;
}

// 64 bits as (low, high).
uvec2 add_wide(uvec2 a, uvec2 b) {
    uint carry;
    uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

uvec2 times_wide(uint a, uint b) {
    uint high, low;
    umulExtended(a, b, high, low);
    return uvec2(low, high);
}

uvec2 negative_wide(uvec2 a) {
    return add_wide(~a, uvec2(1u, 0u));
}

uvec2 add_together(uvec2 own) {
    uint me = gl_LocalInvocationIndex;
    added[me] = own;
    barrier();
    for (uint reach = MEMBERS / 2u; reach > 0u; reach >>= 1) {
        if (me < reach) {
            added[me] = add_wide(added[me], added[me + reach]);
        }
        barrier();
    }
    uvec2 total = added[0];
    barrier();
    return total;
}

#endif
