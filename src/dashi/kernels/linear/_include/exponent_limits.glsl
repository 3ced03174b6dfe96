// Tells from exponents that a product is not below the threshold of canon(). The flush of small products costs as much
// as the products; where the smallest exponents of both factors add up to LEAST_SUM it can change nothing, and is left
// out.
#if T_IS_F64
const uint LEAST_SUM = 1077u;  // biased exponents whose product is 2^-969 or more
#else
const uint LEAST_SUM = 152u;  // biased exponents whose product is 2^-102 or more
#endif
const uint NO_EXPONENT = 0x7fffu;
