// Band energies on a graph, item = node * bands + band: diffusion in each band, list 0 of a node being its neighbours.
// A kernel's file defines energy_value(item), which reads the state, and product() by diffusion_product().
const uint DIFFUSION = 0u;

uint here_band;
T here;

T diffusion_product(uint e) {
    uint other = neighbours[e];
    bool inside = other < nodes;
    T there = energy_value((inside ? other : 0u) * bands + here_band);
    return inside ? mul(canon(weights[e]), canon(there - here)) : not_a_number();
}

// D_b[E](v) = E(v) + kappa_b sum of w(v, u) (E(u) - E(v)) over the neighbours u.
T diffused_at(uint item) {
    uint node = item / bands;
    here_band = item % bands;
    here = energy_value(item);
    uint start = offsets[node];
    uint beyond = offsets[node + 1u];
    bool good = list_is_whole(start, beyond, edges, longest);
    T change = list_sum(DIFFUSION, start, good ? beyond : start);
    return canon(here + mul(canon(kappa[here_band]), good ? canon(change) : not_a_number()));
}

// phi(E) |D[E]|, by which a band drives the others.
T gain_at(uint item, T diffused) {
    return canon(mul(apply_psi(PSI, energy_value(item), alpha, low, high), abs(diffused)));
}
