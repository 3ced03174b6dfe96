void main() {
    for (uint i = gl_GlobalInvocationID.x; i < total; i += stride) {
        uint cell = i % plane;
        uint from = i / plane * fields * plane + cell;
        uint to = i / plane * products * plane + cell;
        T slope_x = canon(values[from + 2u * plane]);
        T slope_y = canon(values[from + 3u * plane]);
        T along = mul(canon(values[from]), slope_x) + mul(canon(values[from + plane]), slope_y);
        result[to] = canon(-along);
        if (products == 3u) {
            T normal = canon(values[from + 4u * plane]);
            T shear = canon(values[from + 5u * plane]);
            T viscosity = mul(canon(eddy), p_sqrt(mul(normal, normal) + mul(shear, shear)));
            result[to + plane] = canon(mul(viscosity, slope_x));
            result[to + 2u * plane] = canon(mul(viscosity, slope_y));
        }
    }
}
