// options: -g
// Source places: an access that traps, and a call that is not supported.

kernel void wild(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    int n = x[i];
    out[i] = n;
    if (n == 3)
        out[0x30000000] = n;
}

// An instruction for debuggers stands before the phi behind the loop.
kernel void sums(global const int *x, global int *out, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[k] * (k + 1);
    out[get_global_id(0)] = sum;
}
