// One invocation for each channel of each sequence: a column of the head's state, which lies in the last rows of the
// result. Channels are neighbours in memory.
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
        for (uint e = 0u; e < n; e++) {
            result[own + e * channels] = canon(start[(z * n + e) * channels + channel]);
        }
    }
    for (uint step = begin; step < end_step; step++) {
        uint row = z * steps + step;
        T decay = p_exp(canon(log_decay[row * heads + head]));
        uint at = (row * groups + group) * n;
        T stored = T(0);
        for (uint run = 0u; run < n; run += RUN) {
            T sum = T(0);
            uint end = min(run + RUN, n);
            for (uint e = run; e < end; e++) {
                T state = mul(decay, result[own + e * channels]);
                result[own + e * channels] = state;
                sum += mul(state, canon(k[at + e]));
            }
            stored += sum;
        }
        T missing = canon(canon(v[row * channels + channel]) - canon(stored));
        T change = mul(canon(beta[row * heads + head]), missing);
        T total = T(0);
        for (uint run = 0u; run < n; run += RUN) {
            T sum = T(0);
            uint end = min(run + RUN, n);
            for (uint e = run; e < end; e++) {
                T state = canon(result[own + e * channels] + mul(canon(k[at + e]), change));
                result[own + e * channels] = state;
                sum += mul(state, canon(q[at + e]));
            }
            total += sum;
        }
        result[(z * (steps + n) + step) * channels + channel] = canon(total);
    }
}
