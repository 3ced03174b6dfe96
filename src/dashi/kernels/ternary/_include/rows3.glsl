// Boxes of 3 x 3 on a periodic grid whose rows are whole vectors of 16 sites: an invocation goes down ROWS rows of one
// vector, four sites to a word. A kernel's file includes this after it has defined
//     uint lifted(uint bytes)                    four sites in the form in which they are joined
//     uint joined(uint a, uint b, uint c)        three of them
//     uint decided(uint box, uint own)           four bytes of the result, from the joined box and the lifted sites
// and has the buffers s (u32x4), words (u32, the same memory) and result (u32x4), and the push constants of
// torus.ROWS_PUSH.

struct Row {
    uint left;
    uvec4 middle;
    uint right;
};

Row read_row(uint y, uint column) {
    uint start = y * vectors;
    uint before = column == 0u ? vectors - 1u : column - 1u;
    uint after = column + 1u == vectors ? 0u : column + 1u;
    uvec4 own = s[start + column];
    uint near = words[4u * (start + before) + 3u];
    uint next = words[4u * (start + after)];
    return Row(lifted(near), uvec4(lifted(own.x), lifted(own.y), lifted(own.z), lifted(own.w)), lifted(next));
}

// Four sites: their columns, and the columns on both sides.
uint decided_four(uint before, uint columns, uint after, uint own) {
    uint left = columns << 8 | before >> 24;
    uint right = columns >> 8 | after << 24;
    return decided(joined(left, columns, right), own);
}

uvec4 decided_row(Row a, Row b, Row c) {
    uint left = joined(a.left, b.left, c.left);
    uint x = joined(a.middle.x, b.middle.x, c.middle.x);
    uint y = joined(a.middle.y, b.middle.y, c.middle.y);
    uint z = joined(a.middle.z, b.middle.z, c.middle.z);
    uint w = joined(a.middle.w, b.middle.w, c.middle.w);
    uint right = joined(a.right, b.right, c.right);
    return uvec4(
        decided_four(left, x, y, b.middle.x),
        decided_four(x, y, z, b.middle.y),
        decided_four(y, z, w, b.middle.z),
        decided_four(z, w, right, b.middle.w)
    );
}

void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint column = item % vectors;
        uint first = item / vectors * ROWS;
        uint end = min(first + ROWS, h);
        Row a = read_row(first == 0u ? h - 1u : first - 1u, column);
        Row b = read_row(first, column);
        for (uint y = first; y < end; y++) {
            Row c = read_row(y + 1u == h ? 0u : y + 1u, column);
            result[y * vectors + column] = decided_row(a, b, c);
            a = b;
            b = c;
        }
    }
}
