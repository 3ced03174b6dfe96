// One workgroup makes a subtree of parent nodes: neighbours pair up level by level in shared memory, an odd last node
// is carried up unchanged. Only the last workgroup can be odd, so the tree is BLAKE3's own whatever a workgroup holds.
const uint ROW = 9u;
shared uint stage[2u * LOCAL * ROW];

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint group = first_group + gl_WorkGroupID.x;
    uint first = group * 2u * LOCAL;
    uint count = min(nodes - first, 2u * LOCAL);
    for (uint i = lane; i < count * 8u; i += LOCAL) {
        stage[(i / 8u) * ROW + i % 8u] = children[first * 8u + i];
    }
    barrier();
    while (count > 1u) {
        uvec4 low = IV_LOW;
        uvec4 high = IV_HIGH;
        uint left = 2u * lane * ROW;
        if (2u * lane + 1u < count) {
            uint m[16];
#define TAKE(i) m[i] = stage[left + i + i / 8u * (ROW - 8u)];
            FOR16(TAKE)
            compress(low, high, m, 0u, BLOCK, PARENT | (count == 2u && nodes <= 2u * LOCAL ? ROOT : 0u));
        } else if (2u * lane < count) {
#define CARRY(i) low[i] = stage[left + i]; high[i] = stage[left + 4u + i];
            FOR4(CARRY)
        }
        barrier();
        count = (count + 1u) / 2u;
        if (lane < count) {
#define RAISE(i) stage[lane * ROW + i] = low[i]; stage[lane * ROW + 4u + i] = high[i];
            FOR4(RAISE)
        }
        barrier();
    }
    // Of a root, which is the digest, four words are kept.
    if (lane < (nodes <= 2u * LOCAL ? 4u : 8u)) {
        parents[group * 8u + lane] = stage[lane];
    }
}
