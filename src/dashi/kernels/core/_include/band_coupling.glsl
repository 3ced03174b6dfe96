// Band energies on a graph, item = node * bands + band: coupling across the bands of a node, list 1 being all bands. A
// kernel's file defines gain_value(item), which reads what band_diffusion.glsl made, and product() by
// coupling_product().
const uint COUPLING = 1u;

uint own_item;

// The band's own term is +0, at its place.
T coupling_product(uint e) {
    uint band = own_item % bands;
    return e == band ? T(0) : mul(canon(coupling[band * bands + e]), gain_value(own_item - band + e));
}

T coupled_at(uint item, T diffused) {
    own_item = item;
    return canon(diffused + mul(canon(strength), canon(list_sum(COUPLING, 0u, bands))));
}
