// options: -g
// Source places: an access that traps, and a call that is not supported.

kernel void wild(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    int n = x[i];
    out[i] = n;
    if (n == 3)
        out[0x30000000] = n;
}
