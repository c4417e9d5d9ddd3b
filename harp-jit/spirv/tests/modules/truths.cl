// Comparisons that clang takes together: the vector of their results becomes an integer, which no OpBitcast may do, but
// llvm-spirv writes one.
kernel void differ(global const int *a, global const int *b, global int *found) {
    int i = get_global_id(0);
    int x[16], y[16];
    for (int k = 0; k < 16; k++)
        x[k] = a[16 * i + k];
    for (int k = 0; k < 16; k++)
        y[k] = b[16 * i + k];
    for (int k = 0; k < 16; k++)
        if (x[k] != y[k])
            found[i] = 1;
}

// Optimized, this is one OpLogicalNotEqual.
kernel void signs(global const float *a, global const float *b, global int *out) {
    int i = get_global_id(0);
    out[i] = (a[i] < 0.0f) != (b[i] < 0.0f);
}
