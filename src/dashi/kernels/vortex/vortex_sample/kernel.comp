#include "mesh_weights.glsl"

void main() {
    for (uint item = first_item + gl_GlobalInvocationID.x; item < items; item += stride) {
        uint x = item % n;
        uint y = item / n % n;
        uint image = item / n / n;
        uint along = image / c * v + first;
        T dx = mul(canon(reach), canon(velocity[mesh_place(along, y, 0, x, 0)]));
        T dy = mul(canon(reach), canon(velocity[mesh_place(along + 1u, y, 0, x, 0)]));
        T total = T(0);
        for (int a = -mesh_reach(); a <= mesh_reach(); a++) {
            T row = mesh_weight(T(a) - dy);
            for (int b = -mesh_reach(); b <= mesh_reach(); b++) {
                T weight = mul(mesh_weight(T(b) - dx), row);
                total += mul(weight, canon(fields[mesh_place(image, y, a, x, b)]));
            }
        }
        T value = canon(total);
        if (goes_too_far(dx, dy)) {
            value = not_a_number();
        }
        result[item] = value;
    }
}
