// Targets out of range become m, the key after all others, so that digits above those of m need no pass.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        keys[i] = min(index[i], m);
    }
}
