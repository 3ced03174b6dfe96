// Every pixel of a plane, written by void pixel(uint x, uint y): kernels/raster.py plans it. A workgroup takes blocks
// of 32 x 8 ROWS pixels, so that what neighbours read is near in both directions.
// Needs the push constants w, h, across, blocks, stride and the specialisation constant ROWS.
void pixel(uint x, uint y);

void main() {
    for (uint block = gl_WorkGroupID.x; block < blocks; block += stride) {
        uint x = block % across * 32u + gl_LocalInvocationID.x;
        uint y = block / across * (8u * ROWS) + gl_LocalInvocationID.y;
        [[unroll]] for (uint k = 0u; k < ROWS; k++) {
            if (x < w && y < h) {
                pixel(x, y);
            }
            y += 8u;
        }
    }
}
