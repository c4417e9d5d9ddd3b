// options: -Wno-format -Wno-format-extra-args
// What kernels print.

kernel void lines(global const int *x, global const float *f) {
    int i = get_global_id(0);
    printf("%d: %5.2f|%-6d|%06d|%x|%c|%s\n", i, f[i], x[i], x[i], (uint)x[i], 'a' + i, "text");
    if (x[i] > 2) printf("%v4d %v2hlf", (int4)(x[i], 1, 2, 3), (float2)(f[i], 0.5f));
    printf("100%%\n");
}

constant char *constant names[] = {"zero", "one", "many"};

// Texts and formats that are chosen, values of another kind than C wants, and more of them.
kernel void chosen(global const int *x, global const float *f) {
    int i = get_global_id(0);
    printf("%s %s|%6.2s\n", x[i] & 1 ? "odd" : "even", names[clamp(x[i], 0, 2)], names[1]);
    if (x[i] > 2)
        printf("%d is large\n", x[i]);
    else
        printf("small is %03d\n", x[i]);
    printf("%d %f|%d", f[i], x[i], i, f[i]);
    printf("");
}
