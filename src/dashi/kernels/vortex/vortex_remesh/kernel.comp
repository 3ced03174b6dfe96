#include "mesh_weights.glsl"

void main() {
    for (uint item = first_item + gl_GlobalInvocationID.x; item < items; item += stride) {
        uint x = item % n;
        uint y = item / n % n;
        uint member = item / n / n;
        bool lost = false;
        T total = T(0);
        for (int a = -mesh_reach(); a <= mesh_reach(); a++) {
            for (int b = -mesh_reach(); b <= mesh_reach(); b++) {
                uint along = member * v + first;
                T dx = mul(canon(reach), canon(velocity[mesh_place(along, y, a, x, b)]));
                T dy = mul(canon(reach), canon(velocity[mesh_place(along + 1u, y, a, x, b)]));
                lost = lost || goes_too_far(dx, dy);
                T weight = mul(mesh_weight(T(b) + dx), mesh_weight(T(a) + dy));
                total += mul(weight, canon(fields[mesh_place(member * c, y, a, x, b)]));
            }
        }
        T value = canon(total);
        if (lost) {
            value = not_a_number();
        }
        result[item] = value;
    }
}
