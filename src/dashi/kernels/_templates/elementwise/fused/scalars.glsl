// The scalars of a fused kernel, as values.
T scalar0() {
    return canon(a0);
}

T scalar1() {
    return canon(a1);
}

T scalar2() {
    return canon(a2);
}

T scalar3() {
    return canon(a3);
}

T scalar4() {
    return canon(a4);
}

T scalar5() {
    return canon(a5);
}

T scalar6() {
    return canon(a6);
}

T scalar7() {
    return canon(a7);
}

T every_scalar() {
    return scalar0() + scalar1() + scalar2() + scalar3() + scalar4() + scalar5() + scalar6() + scalar7();
}
