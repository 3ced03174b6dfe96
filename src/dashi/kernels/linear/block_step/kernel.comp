#include "psi.glsl"
#include "list_tile.glsl"
#include "block_entries.glsl"

T make(uint out_at, T total) {
    return activated(out_at, total);
}
