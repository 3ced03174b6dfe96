// erf, within 1 ulp: x + x p(x^2) below 1/2, polynomials on intervals from there, and 1 from 4. NaN gives NaN.
#ifndef PORTABLE_F32_ERF_GLSL
#define PORTABLE_F32_ERF_GLSL

// erf(size) for size in [1/2, 4): on intervals of length 1/2, the value at the middle and a polynomial. The numbers
// stand in the code: compilers of processors take minutes for a table as long.
float p_erf_large(float size) {
    float s, p;
    if (size < 1.0) {
        s = size - 0.75;
        p = 0.017945846542716026;
        p = p * s + -0.02658287063241005;
        p = p * s + -0.05322369188070297;
        p = p * s + 0.15067563951015472;
        p = p * s + 0.026788556948304176;
        p = p * s + -0.48219814896583557;
        p = p * s + 0.6429310441017151;
        p = p * s + -1.9623396241286173e-08;
        p += 0.7111556529998779;
    } else if (size < 1.5) {
        s = size - 1.25;
        p = 0.00373225100338459;
        p = p * s + 0.0205975454300642;
        p = p * s + -0.04718514531850815;
        p = p * s + -0.0061320168897509575;
        p = p * s + 0.16753584146499634;
        p = p * s + -0.29565173387527466;
        p = p * s + 0.23652112483978271;
        p = p * s + -1.1361573903911903e-08;
        p += 0.9229001402854919;
    } else if (size < 2.0) {
        s = size - 1.75;
        p = -0.005947051104158163;
        p = p * s + 0.00904959999024868;
        p = p * s + 0.006619999185204506;
        p = p * s + -0.04810553416609764;
        p = p * s + 0.09015733748674393;
        p = p * s + -0.09235620498657227;
        p = p * s + 0.05277499556541443;
        p = p * s + -1.5033821298970906e-08;
        p += 0.9866716861724854;
    } else if (size < 2.5) {
        s = size - 2.25;
        p = -0.0007159299566410482;
        p = p * s + -0.0027795613277703524;
        p = p * s + 0.010659446939826012;
        p = p * s + -0.0190882571041584;
        p = p * s + 0.021724531427025795;
        p = p * s + -0.016070157289505005;
        p = p * s + 0.00714231887832284;
        p = p * s + -1.8722841943485946e-08;
        p += 0.9985373020172119;
    } else if (size < 3.0) {
        s = size - 2.75;
        p = 0.0006369699840433896;
        p = p * s + -0.0016678639221936464;
        p = p * s + 0.002756164874881506;
        p = p * s + -0.003257709089666605;
        p = p * s + 0.0027603842318058014;
        p = p * s + -0.0016122674569487572;
        p = p * s + 0.0005862772813998163;
        p = p * s + -9.271945877742382e-09;
        p += 0.9998993873596191;
    } else if (size < 3.5) {
        s = size - 3.25;
        p = 0.00017319944163318723;
        p = p * s + -0.0002737579634413123;
        p = p * s + 0.0003136722953058779;
        p = p * s + -0.00028616946656256914;
        p = p * s + 0.00019581126980483532;
        p = p * s + -9.486933413427323e-05;
        p = p * s + 2.9189022825448774e-05;
        p = p * s + -1.1235274044452126e-08;
        p += 0.9999957084655762;
    } else {
        s = size - 3.75;
        p = 1.704719579720404e-05;
        p = p * s + -2.069178481178824e-05;
        p = p * s + 1.8340722817811184e-05;
        p = p * s + -1.3785468581772875e-05;
        p = p * s + 7.969994840095751e-06;
        p = p * s + -3.306069629616104e-06;
        p = p * s + 8.814314469418605e-07;
        p = p * s + 5.483398624051006e-09;
        p += 0.9999998807907104;
    }
    return p;
}

float p_erf_small(float size) {
    float y = size < 0.0001220703125 ? 0.0 : size;
    float z = y * y;
    float p = 0.004719082731753588;
    p = p * z + -0.026757732033729553;
    p = p * z + 0.1128283143043518;
    p = p * z + -0.37612608075141907;
    p = p * z + 0.12837916612625122;
    return size + size * p;
}

float p_erf(float x) {
    uint bits = floatBitsToUint(canon(x));
    uint size = bits & 0x7fffffffu;
    uint result = 0x3f800000u;
    if (size < 0x3f000000u) {
        result = floatBitsToUint(p_erf_small(uintBitsToFloat(size)));
    } else if (size < 0x40800000u) {
        result = floatBitsToUint(p_erf_large(uintBitsToFloat(size)));
    }
    result = result == 0u ? result : result | (bits & 0x80000000u);
    return uintBitsToFloat(size > F32_INF ? F32_NAN : result);
}

#endif
