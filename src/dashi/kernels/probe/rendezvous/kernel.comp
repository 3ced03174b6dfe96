// One invocation counts its workgroup in and polls until all are counted; the others hold their places meanwhile.
#pragma use_vulkan_memory_model

const uint POLLS = 1u << 16;

void main() {
    if (gl_LocalInvocationIndex == 0u) {
        atomicAdd(come[0], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
        uint seen = 0u;
        for (uint poll = 0u; poll < POLLS && seen < n; poll++) {
            seen = atomicLoad(come[0], gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
        }
        uint me = gl_WorkGroupID.x;
        result[me] = x[me] + (seen < n ? 0u : 1u);
    }
    barrier();
}
