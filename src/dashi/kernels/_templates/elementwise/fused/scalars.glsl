// The scalars of a fused kernel, as values.
T scalar0() {
    return canon(number0);
}

T scalar1() {
    return canon(number1);
}

T scalar2() {
    return canon(number2);
}

T scalar3() {
    return canon(number3);
}

T scalar4() {
    return canon(number4);
}

T scalar5() {
    return canon(number5);
}

T scalar6() {
    return canon(number6);
}

T scalar7() {
    return canon(number7);
}

T every_scalar() {
    return scalar0() + scalar1() + scalar2() + scalar3() + scalar4() + scalar5() + scalar6() + scalar7();
}
