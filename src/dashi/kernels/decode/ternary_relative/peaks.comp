// A workgroup finds the largest magnitude of one part of one member.
#include "relative.glsl"

void main() {
    for (uint item = gl_WorkGroupID.x; item < total; item += stride) {
        uint first = item / parts * plane;
        KEY key = key_of(T(0));
        for (uint i = item % parts * LANES + gl_LocalInvocationIndex; i < plane; i += parts * LANES) {
            key = max(key, size_key(x[first + i]));
        }
        key = joined(key);
        if (gl_LocalInvocationIndex == 0u) {
            found[item] = canon(VALUE_OF(key));
        }
        barrier();
    }
}
