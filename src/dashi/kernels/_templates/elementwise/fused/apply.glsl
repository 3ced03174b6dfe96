// The function that fused kernels are about, with a body that copies its first values and calls every function once.
#ifdef TEXT
Results apply(Values v) {
    return Results(call_text(EVERY_VALUE(v)), OTHER_ZEROS);
}
#else
Results apply(Values v) {
    if (n == 0u) {
        v.x0 = every_op(every_scalar());
    }
    return Results(FIRST_VALUES(v));
}
#endif
