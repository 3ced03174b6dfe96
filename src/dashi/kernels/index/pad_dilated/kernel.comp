// Whether a place of the result shows an element of the source along an axis, and which: `at` is counted from the first
// element, so that places before it are huge.
bool shows(uint at, uint apart, uint length) {
    return at % apart == 0u && at / apart < length;
}

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint line = i / WIDTH;
        uint plane = line / HEIGHT;
        uint x_at = i % WIDTH - low_w;
        uint y_at = line % HEIGHT - low_h;
        uint z_at = plane % DEPTH - low_d;
        T v = canon(value);
        if (shows(x_at, APART_W, w) && shows(y_at, APART_H, h) && shows(z_at, APART_D, d)) {
            v = canon(x[((plane / DEPTH * d + z_at / APART_D) * h + y_at / APART_H) * w + x_at / APART_W]);
        }
        result[i] = v;
    }
}
