// One workgroup makes a subtree of parent nodes: neighbours pair up level by level in shared memory, an odd last node is
// carried up unchanged. Only the last workgroup can be odd, so the tree is BLAKE3's own whatever the workgroup holds.
const uint ROW = 9u;
shared uint stage[2u * LOCAL * ROW];

void main() {
    uint lane = gl_LocalInvocationID.x;
    uint first = gl_WorkGroupID.x * 2u * LOCAL;
    uint count = min(nodes - first, 2u * LOCAL);
    for (uint i = lane; i < count * 8u; i += LOCAL) {
        stage[(i / 8u) * ROW + i % 8u] = children[first * 8u + i];
    }
    barrier();
    while (count > 1u) {
        uint value[8] = IV;
        uint left = 2u * lane * ROW;
        if (2u * lane + 1u < count) {
            uint m[16];
#define PAIR(i) m[i] = stage[left + i]; m[8u + i] = stage[left + ROW + i];
            FOR8(PAIR)
            compress(value, m, 0u, BLOCK, PARENT | (count == 2u && nodes <= 2u * LOCAL ? ROOT : 0u));
        } else if (2u * lane < count) {
#define CARRY(i) value[i] = stage[left + i];
            FOR8(CARRY)
        }
        barrier();
        count = (count + 1u) / 2u;
        if (lane < count) {
#define RAISE(i) stage[lane * ROW + i] = value[i];
            FOR8(RAISE)
        }
        barrier();
    }
    // The root is the digest, of which four words are kept.
    if (lane < (nodes <= 2u * LOCAL ? 4u : 8u)) {
        parents[gl_WorkGroupID.x * 8u + lane] = stage[lane];
    }
}
