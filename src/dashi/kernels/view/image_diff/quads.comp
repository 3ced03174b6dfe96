#include "channels.glsl"

uvec4 quad(uint q) {
    uvec4 p = a[q];
    uvec4 r = b[q];
    return uvec4(diff(p.x, r.x), diff(p.y, r.y), diff(p.z, r.z), diff(p.w, r.w));
}
