void main() {
    for (uint i = gl_GlobalInvocationID.x; i < count; i += stride) {
        words[i] = uint64_t(0);
    }
    if (gl_GlobalInvocationID.x < 4u) {
        flag[gl_GlobalInvocationID.x] = 0u;
    }
}
