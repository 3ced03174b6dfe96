// The words of 128 sites for each invocation, four of them: their ranks, and their signs, read from there, go into
// shared memory, 16 sites to an entry. Then the workgroup goes over the sites side by side, 16 to an invocation; a
// table turns support and signs of four sites into their bytes.
#include "planes.glsl"
#include "trits.glsl"

const uint MEMBERS = 256u;
const uint TILE = 4u * MEMBERS;     // words
shared uint fours[256];             // by the signs of four sites, moved together, and their support above: their bytes
shared uvec4 counted[MEMBERS / 4u];
shared uvec4 halves[2u * MEMBERS];  // support and signs of 16 sites, four times

uint four_from(uint codes) {
    uint held = ((codes >> 4) * 0x00204081u) & ONES;  // in every byte one bit
    uint ranks = held * 0x01010100u;
    uint minus = codes & 1u;
    minus |= (codes >> (ranks >> 8 & 3u) & 1u) << 8;
    minus |= (codes >> (ranks >> 16 & 3u) & 1u) << 16;
    minus |= (codes >> (ranks >> 24) & 1u) << 24;
    return trits_of(held, minus & held);
}

// Four words of the support plane; of sites that do not exist, nothing.
uvec4 support_from(uint word) {
    uvec4 mask = support[word / 4u];
    if (words - word <= 4u) {
        mask &= uvec4(
            sites_below(word, n), sites_below(word + 1u, n), sites_below(word + 2u, n), sites_below(word + 3u, n)
        );
    }
    return mask;
}

uint sign_word(uint at) {
    return at < words ? signs[at] : 0u;
}

// 32 bits of the sign plane from a rank on.
uint signs_from(uint rank) {
    uint at = rank >> 5;
    uint apart = rank & 31u;
    return sign_word(at) >> apart | (sign_word(at + 1u) << 1) << (31u - apart);
}

// The 32 sites of a word as two entries.
uvec2 halves_from(uint mask, uint bits) {
    uint low = mask & 0xffffu;
    return uvec2(low | bits << 16, mask >> 16 | (bits >> bitCount(low)) << 16);
}

void read_words(uint tile) {
    uint me = gl_LocalInvocationIndex;
    uint word = tile * TILE + 4u * me;
    uint start = 0u;
    uvec4 mask = uvec4(0u);
    if (word < words) {
        start = supers[word / SUPER_WORDS] + blocks[word / BLOCK_WORDS];
        mask = support_from(word);
    }
    uvec4 own = uvec4(bitCount(mask));
    counted[me / 4u][me % 4u] = own.x + own.y + own.z + own.w;
    barrier();
    uvec4 block = counted[me / 4u];
    uint place = me % 4u;
    start += (place > 0u ? block.x : 0u) + (place > 1u ? block.y : 0u) + (place > 2u ? block.z : 0u);
    uint x = signs_from(start);
    uint y = signs_from(start + own.x);
    uint z = signs_from(start + own.x + own.y);
    uint w = signs_from(start + own.x + own.y + own.z);
    halves[2u * me] = uvec4(halves_from(mask.x, x), halves_from(mask.y, y));
    halves[2u * me + 1u] = uvec4(halves_from(mask.z, z), halves_from(mask.w, w));
    barrier();
}

// The bytes of 16 sites.
uvec4 sites_from(uint own) {
    uint bits = own >> 16;
    uint x = (own << 4 & 0xf0u) | (bits & 0xfu);
    uint y = (own & 0xf0u) | (bits >> bitCount(own & 0xfu) & 0xfu);
    uint z = (own >> 4 & 0xf0u) | (bits >> bitCount(own & 0xffu) & 0xfu);
    uint w = (own >> 8 & 0xf0u) | (bits >> bitCount(own & 0xfffu) & 0xfu);
    return uvec4(fours[x], fours[y], fours[z], fours[w]);
}

void write_sites(uint tile) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        uint at = i * MEMBERS + me;
        uint vector = tile * 2u * TILE + at;
        if (vector <= (n - 1u) / 16u) {
            result[vector] = sites_from(halves[at / 4u][me % 4u]);
        }
    }
}

// Every invocation of a workgroup makes the same trips, so all of them reach every barrier.
void main() {
    fours[gl_LocalInvocationIndex] = four_from(gl_LocalInvocationIndex);
    for (uint tile = gl_WorkGroupID.x; tile * TILE < words; tile += stride) {
        read_words(tile);
        write_sites(tile);
        barrier();
    }
}
