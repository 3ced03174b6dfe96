// Sources as the sums need them: x, y, Gamma/(2 pi), and d^2, or 1/d^2 where no sum needs d^2 itself.
void main() {
    for (uint i = first_item + gl_GlobalInvocationID.x; i < items; i += stride) {
        uint row = w * i;
        T core = canon(sources[row + 2u]);
        packed[4u * i] = canon(sources[row]);
        packed[4u * i + 1u] = canon(sources[row + 1u]);
        packed[4u * i + 2u] = canon(mul(mul(canon(sources[row + 3u]), canon(quantum)), canon(terms[0])));
        if (ALGEBRAIC == 0u && MIXED == 0u) {
            core = p_reciprocal(core);
        }
        packed[4u * i + 3u] = canon(core);
    }
}
