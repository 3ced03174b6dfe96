// One workgroup: counts of superblocks, any number of them, to the ranks that they start from, and the whole count.
const uint MEMBERS = 256u;
shared uint counted[2][MEMBERS];

void main() {
    uint me = gl_LocalInvocationIndex;
    uint share = (many + MEMBERS - 1u) / MEMBERS;
    uint first = min(me * share, many);
    uint beyond = min(first + share, many);
    uint own = 0u;
    for (uint i = first; i < beyond; i++) {
        own += counts[i];
    }
    counted[0][me] = own;
    barrier();
    uint from = 0u;
    for (uint reach = 1u; reach < MEMBERS; reach <<= 1) {
        uint sum = counted[from][me];
        if (me >= reach) {
            sum += counted[from][me - reach];
        }
        from = 1u - from;
        counted[from][me] = sum;
        barrier();
    }
    uint rank = counted[from][me] - own;
    for (uint i = first; i < beyond; i++) {
        supers[i] = rank;
        rank += counts[i];
    }
    if (me == MEMBERS - 1u) {
        count[0] = rank;
    }
}
