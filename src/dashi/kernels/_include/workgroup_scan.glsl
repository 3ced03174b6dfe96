// The exclusive prefix sums of one number of each of 256 invocations. Between two calls there must be a barrier.
const uint SCAN_ROW = 16u;

shared uint scan_sums[272];
shared uint scan_rows[SCAN_ROW];

uint exclusive_scan(uint value, out uint total) {
    uint lane = gl_LocalInvocationIndex;
    uint row = lane / SCAN_ROW;
    // One word between rows keeps their invocations in different banks.
    scan_sums[lane + row] = value;
    barrier();
    if (lane < SCAN_ROW) {
        uint sum = 0u;
        [[unroll]] for (uint k = 0u; k < SCAN_ROW; k++) {
            uint next = scan_sums[lane * (SCAN_ROW + 1u) + k];
            scan_sums[lane * (SCAN_ROW + 1u) + k] = sum;
            sum += next;
        }
        scan_rows[lane] = sum;
    }
    barrier();
    uint before = scan_sums[lane + row];
    total = 0u;
    [[unroll]] for (uint k = 0u; k < SCAN_ROW; k++) {
        uint sum = scan_rows[k];
        before += k < row ? sum : 0u;
        total += sum;
    }
    return before;
}
