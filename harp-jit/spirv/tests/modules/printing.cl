// What kernels print.

kernel void lines(global const int *x, global const float *f) {
    int i = get_global_id(0);
    printf("%d: %5.2f|%-6d|%06d|%x|%c|%s\n", i, f[i], x[i], x[i], (uint)x[i], 'a' + i, "text");
    if (x[i] > 2) printf("%v4d %v2hlf", (int4)(x[i], 1, 2, 3), (float2)(f[i], 0.5f));
    printf("100%%\n");
}
