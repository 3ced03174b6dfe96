void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        P f = force[i % plane];
        result[i] = P(canon(canon(x[i].x) + canon(f.x)), canon(canon(x[i].y) + canon(f.y)));
    }
}
