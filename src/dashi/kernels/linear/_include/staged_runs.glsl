// Runs of 64 values that a workgroup stages for all its invocations, in vectors P of 16 bytes.
#if T_IS_F64
#define P dvec2
const uint P_LANES = 2u;
#else
#define P vec4
const uint P_LANES = 4u;
#endif
const uint RUN = 64u;
