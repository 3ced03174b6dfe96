// Quads of a field that is declared as 16-byte vectors: the file that includes this defines uint shown(T v).
uvec4 quad(uint q) {
#if T_IS_F64
    V a = field[2u * q];
    V b = field[2u * q + 1u];
    return uvec4(shown(a.x), shown(a.y), shown(b.x), shown(b.y));
#else
    V a = field[q];
    return uvec4(shown(a.x), shown(a.y), shown(a.z), shown(a.w));
#endif
}
