void main() {
    uint size = length * width;
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint row = i % size / width;
        uint position = positions[i / size];
        bool over = row >= position && row - position < count;
        uint from = over ? (i / size * count + row - position) * width + i % width : 0u;
        result[i] = over ? canon(rows[from]) : canon(x[i]);
    }
}
