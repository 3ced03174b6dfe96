// Moves the keys of a block to where the digit at `shift` says, tile by tile, equal digits in their order. A tile is
// sorted in shared memory first, so that what is written lies in runs: by the low and then by the high half of the
// digit, each time by counting. An item is a digit (from bit 16) and the place in the tile that it comes from.
#include "radix_keys.glsl"
#include "workgroup_scan.glsl"

const uint LANES = 256u;
// ITEMS are at most 15, so that counts of one invocation fit 4 bits; odd, so that its items lie in different banks than
// those of others.
const uint TILE = LANES * ITEMS;
const uint PAIRS = 8u;
const uint PLACE = 0xFFFFu;
const uint LAST = SIGN;

shared uint items[TILE];
// How many of digit h (low half of a word) and h + 8 (high half) an invocation has, all of h = 0 first.
shared uint tally[2304];
// Where the next key of each digit goes; while a tile is written, less its first place in the tile.
shared uint base[LANES];

uint padded(uint i) {
    return i + i / PAIRS;
}

uint half_digit(uint item, uint at) {
    return bitfieldExtract(item, int(at), 4);
}

// Sorts the items by four bits at `at`. Each invocation takes ITEMS in a row.
void split(uint at) {
    uint lane = gl_LocalInvocationIndex;
    uint own[ITEMS];
    [[unroll]] for (uint j = 0u; j < ITEMS; j++) {
        own[j] = items[lane * ITEMS + j];
    }
    uvec2 counted = uvec2(0u);
    [[unroll]] for (uint j = 0u; j < ITEMS; j++) {
        uint h = half_digit(own[j], at);
        uint unit = 1u << 4u * (h % PAIRS);
        counted += h < PAIRS ? uvec2(unit, 0u) : uvec2(0u, unit);
    }
    [[unroll]] for (uint r = 0u; r < PAIRS; r++) {
        uvec2 pair = bitfieldExtract(counted, int(4u * r), 4);
        tally[padded(r * LANES + lane)] = pair.x | pair.y << 16u;
    }
    barrier();
    uint part[PAIRS];
    uint sum = 0u;
    [[unroll]] for (uint r = 0u; r < PAIRS; r++) {
        part[r] = tally[lane * (PAIRS + 1u) + r];
        sum += part[r];
    }
    uint total;
    uint before = exclusive_scan(sum, total);
    // The high halves come after all low ones.
    before += total << 16u;
    [[unroll]] for (uint r = 0u; r < PAIRS; r++) {
        tally[lane * (PAIRS + 1u) + r] = before;
        before += part[r];
    }
    barrier();
    counted = uvec2(0u);
    [[unroll]] for (uint j = 0u; j < ITEMS; j++) {
        uint h = half_digit(own[j], at);
        bool low = h < PAIRS;
        int nibble = int(4u * (h % PAIRS));
        uint starts = tally[padded(h % PAIRS * LANES + lane)];
        uint rank = (low ? starts & 0xFFFFu : starts >> 16u) + bitfieldExtract(low ? counted.x : counted.y, nibble, 4);
        items[rank] = own[j];
        counted += low ? uvec2(1u << nibble, 0u) : uvec2(0u, 1u << nibble);
    }
    barrier();
}

// The tile's digits, sorted: order[q] is the item at place q * LANES + lane, its highest bit set if it ends its run.
// Places past the tile's keys come last, as digit 255.
void sort_tile(W key[ITEMS], uint count, out uint order[ITEMS]) {
    uint lane = gl_LocalInvocationIndex;
    [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
        uint i = q * LANES + lane;
        items[i] = (i < count ? digit_of(key[q]) : 255u) << 16u | i;
    }
    barrier();
    for (uint at = 16u; at < 24u; at += 4u) {
        split(at);
    }
    [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
        uint p = q * LANES + lane;
        order[q] = items[p];
        if (p < count) {
            uint digit = order[q] >> 16u;
            if (p == 0u || items[p - 1u] >> 16u != digit) {
                base[digit] -= p;
            }
            if (p + 1u == count || items[p + 1u] >> 16u != digit) {
                order[q] |= LAST;
            }
        }
    }
    barrier();
}

uint digit_of_item(uint item) {
    return item >> 16u & 0xFFu;
}

// A word of every key or payload, from the order of the source to that of the result.
void permute(inout uint word[ITEMS], uint order[ITEMS]) {
    uint lane = gl_LocalInvocationIndex;
    [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
        items[q * LANES + lane] = word[q];
    }
    barrier();
    [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
        word[q] = items[order[q] & PLACE];
    }
    barrier();
}

uint word_of(uint key, uint k) {
    return key;
}

uint word_of(uvec2 key, uint k) {
    return key[k];
}

void set_word(inout uint key, uint k, uint word) {
    key = word;
}

void set_word(inout uvec2 key, uint k, uint word) {
    key[k] = word;
}

// What is written: keys as they are, but one NaN for all.
uint canonical(uint key) {
    return kind == 2u && (key & ~SIGN) > 0x7F800000u ? 0x7FC00000u : key;
}

uvec2 canonical(uvec2 key) {
    uint magnitude = key.y & ~SIGN;
    bool odd = magnitude > 0x7FF00000u || (magnitude == 0x7FF00000u && key.x != 0u);
    return kind == 2u && odd ? uvec2(0u, 0x7FF80000u) : key;
}

void write_keys(W key[ITEMS], uint order[ITEMS], uint count) {
    uint lane = gl_LocalInvocationIndex;
    [[unroll]] for (uint k = 0u; k < KEY_WORDS; k++) {
        uint word[ITEMS];
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            word[q] = word_of(key[q], k);
        }
        permute(word, order);
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            set_word(key[q], k, word[q]);
        }
    }
    [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
        uint p = q * LANES + lane;
        if (p < count) {
            result[base[digit_of_item(order[q])] + p] = canonical(key[q]);
        }
    }
}

#ifdef PAYLOAD
void write_payload(uint first, uint order[ITEMS], uint count) {
    uint lane = gl_LocalInvocationIndex;
    for (uint k = 0u; k < words; k++) {
        uint word[ITEMS];
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            uint i = first + min(q * LANES + lane, count - 1u);
            word[q] = numbered != 0u ? i : values[i * words + k];
        }
        permute(word, order);
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            uint p = q * LANES + lane;
            if (p < count) {
                moved[(base[digit_of_item(order[q])] + p) * words + k] = word[q];
            }
        }
    }
}
#endif

void main() {
    uint lane = gl_LocalInvocationIndex;
    uint block = gl_WorkGroupID.x;
    uint total;
    base[lane] = exclusive_scan(totals[lane], total) + counts[lane * blocks + block];
    uint end = min(n, (block + 1u) * block_keys);
    for (uint first = block * block_keys; first < end; first += TILE) {
        uint count = min(end - first, TILE);
        W key[ITEMS];
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            key[q] = source[first + min(q * LANES + lane, count - 1u)];
        }
        uint order[ITEMS];
        sort_tile(key, count, order);
#ifdef PAYLOAD
        if (writes_keys != 0u) {
            write_keys(key, order, count);
        }
        write_payload(first, order, count);
#else
        write_keys(key, order, count);
#endif
        barrier();
        [[unroll]] for (uint q = 0u; q < ITEMS; q++) {
            if ((order[q] & LAST) != 0u) {
                base[digit_of_item(order[q])] += q * LANES + lane + 1u;
            }
        }
    }
}
