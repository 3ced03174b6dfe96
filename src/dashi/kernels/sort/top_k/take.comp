// The first `items` keys and their places.
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        result[i] = keys[i];
        places[i] = numbers[i];
    }
}
