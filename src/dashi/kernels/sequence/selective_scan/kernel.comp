// One invocation for each channel of each sequence; its state lies in the last rows of the result. Channels are
// neighbours in memory.
const uint RUN = 64u;

void main() {
    uint item = first_item + gl_GlobalInvocationID.x;
    if (item >= b * channels) {
        return;
    }
    uint z = item / channels;
    uint channel = item % channels;
    uint head = channel / (channels / heads);
    uint group = head / (heads / groups);
    uint own = (z * (steps + n) + steps) * channels + channel;
    if (begin == 0u) {
        for (uint k = 0u; k < n; k++) {
            result[own + k * channels] = canon(start[(z * n + k) * channels + channel]);
        }
    }
    T straight = canon(skip[head]);
    for (uint step = begin; step < end_step; step++) {
        uint row = z * steps + step;
        T pace = canon(delta[row * heads + head]);
        T value = canon(x[row * channels + channel]);
        T entering = mul(pace, value);
        uint at = (row * groups + group) * n;
        T total = T(0);
        for (uint run = 0u; run < n; run += RUN) {
            T sum = T(0);
            uint end = min(run + RUN, n);
            for (uint k = run; k < end; k++) {
                uint place = own + k * channels;
                T decay = p_exp(mul(pace, canon(a[head * rates + k % rates])));
                T state = canon(mul(decay, result[place]) + mul(entering, canon(input_weights[at + k])));
                result[place] = state;
                sum += mul(state, canon(output_weights[at + k]));
            }
            total += sum;
        }
        result[(z * (steps + n) + step) * channels + channel] = canon(canon(total) + mul(straight, value));
    }
}
