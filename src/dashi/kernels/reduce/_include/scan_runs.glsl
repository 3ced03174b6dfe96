// The scan of every run of 64 elements of every row, on top of what the runs before have; one place later, if `shift`.
void main() {
    for (uint item = gl_GlobalInvocationID.x; item < items; item += stride) {
        uint row = item / runs;
        uint run = item - row * runs;
        uint end = min(run * 64u + 64u, n);
        T carry = START;
        if (run > 0u) {
            carry = carries[item - 1u];
        } else if (shift != 0u) {
            result[row * n] = START;
        }
        T total = START;
        for (uint i = run * 64u; i < end; i++) {
            total = JOIN(total, LOAD(x[row * n + i]));
            if (i + shift < n) {
                result[row * n + i + shift] = STORE(JOIN(carry, total));
            }
        }
    }
}
