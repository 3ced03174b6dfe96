void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint member = i / size;
        uint at = i % size;
        if (at >= 2u * held) {
            result[i] = tail[member * tail_size + (at - 2u * held)];
        } else {
            uint place = places[at / 2u];
            result[i] = place < plane ? x[2u * (member * plane + place) + at % 2u] : W(0);
        }
    }
}
