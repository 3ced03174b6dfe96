// The sums of all tiles of a target, in order, and the growth of d^2; what else rows hold does not change.
void main() {
    for (uint item = first_item + gl_GlobalInvocationID.x; item < items; item += stride) {
        uint member = item / t;
        P total = P(0);
        for (uint tile = 0u; tile < tiles; tile++) {
            P part = partial[(member * tiles + tile) * t + item % t];
            total = P(total.x + part.x, total.y + part.y);
        }
        rate[w * item] = canon(total.x);
        rate[w * item + 1u] = canon(total.y);
        rate[w * item + 2u] = canon(growth);
        for (uint k = 3u; k < w; k++) {
            rate[w * item + k] = T(0);
        }
    }
}
