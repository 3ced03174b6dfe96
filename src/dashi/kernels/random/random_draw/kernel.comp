// Number i of row r, for the control words of the row.
#include "draws.glsl"

void main() {
    for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
        uint at = i / count * 4u;
        uvec4 control = uvec4(keys[at], keys[at + 1u], keys[at + 2u], keys[at + 3u]);
        result[i] = draw(KIND, control, i % count, stream);
    }
}
