// One invocation makes the chaining value of one chunk. Chunks lie 1024 bytes apart, so the workgroup fetches one
// block of each of its chunks together (sixteen neighbours read the 64 bytes of one block), and each invocation takes
// its own block from shared memory. Rows of 17 words keep both sides free of bank conflicts.
const uint ROW = 17u;
shared uint stage[LOCAL * ROW];

uint fetch(uint index) {
    return index < words ? data[index] : 0u;
}

void main() {
    const uint STEP = LOCAL / 16u;
    uint lane = gl_LocalInvocationID.x;
    uint first = (first_group + gl_WorkGroupID.x) * LOCAL;
    uint chunk = first + lane;
    uint bytes = chunk + 1u < chunks ? 1024u : tail;
    uint last = bytes == 0u ? 0u : (bytes - 1u) / BLOCK;
    uint source = (first + lane / 16u) * 256u + lane % 16u;
    uint target = (lane / 16u) * ROW + lane % 16u;
    uvec4 low = IV_LOW;
    uvec4 high = IV_HIGH;
    uint m[16];
    uint next[16];
#define FETCH(i) next[i] = fetch(source + i * STEP * 256u);
    FOR16(FETCH)
    for (uint block = 0u; block < blocks; block++) {
        barrier();
#define STORE(i) stage[target + i * STEP * ROW] = next[i];
        FOR16(STORE)
        barrier();
#define TAKE(i) m[i] = stage[lane * ROW + i];
        FOR16(TAKE)
        // The next block is on its way while this one is compressed.
        source += 16u;
        if (block + 1u < blocks) {
            FOR16(FETCH)
        }
        if (chunk < chunks && block <= last) {
            uint flags = (block == 0u ? CHUNK_START : 0u) | (block == last ? CHUNK_END : 0u);
            flags |= block == last && chunks == 1u ? ROOT : 0u;
            compress(low, high, m, chunk, min(bytes - block * BLOCK, BLOCK), flags);
        }
    }
    if (chunk < chunks) {
#define LOW(i) values[chunk * 8u + i] = low[i];
        FOR4(LOW)
    }
    // Of a root, which is the digest, four words are kept.
    if (chunk < chunks && chunks > 1u) {
#define HIGH(i) values[chunk * 8u + 4u + i] = high[i];
        FOR4(HIGH)
    }
}
