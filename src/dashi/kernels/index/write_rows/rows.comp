// Nothing but the rows: what else there is of the result lies there already.
void main() {
    uint size = count * width;
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint row = i % size / width;
        uint position = positions[i / size];
        if (position < length && row < length - position) {
            result[(i / size * length + position + row) * width + i % width] = canon(rows[i]);
        }
    }
}
