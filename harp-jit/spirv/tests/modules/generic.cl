// options: -cl-std=CL2.0

__attribute__((noinline)) int kind(void *p) {
    return (to_global(p) != 0) + 2 * (to_local(p) != 0) + 4 * (to_private(p) != 0);
}

__attribute__((noinline)) int fence(void *p) {
    return get_fence(p);
}

// What pointers of all kinds are taken for, and that what they become points to the same.
__kernel void classify(__global int *out, __global int *data, __local int *given) {
    static __global int words[2] = {5, 6};
    __local int fixed[4];
    int i = get_global_id(0), own[4] = {i, i + 1, i + 2, i + 3};
    int *p = 0;
    switch (i % 7) {
    case 0: p = data + i; break;
    case 1: p = given + get_local_id(0); break;
    case 2: p = fixed; break;
    case 3: p = fixed + 3; break;
    case 4: p = own + 3; break;
    case 5: p = (int *)(words + get_group_id(0)); break;
    }
    out[4 * i] = kind(p);
    out[4 * i + 1] = p ? fence(p) : 3;
    __global int *to_all = to_global(p);
    __local int *to_group = to_local(p);
    __private int *to_self = to_private(p);
    if (to_all)
        *to_all = 1000;
    if (to_group)
        *to_group = 1000 + i;
    if (to_self)
        *to_self = 2000 + i;
    out[4 * i + 2] = p ? *p : -1;
    out[4 * i + 3] = own[3];
}

// Without work-groups no memory is a group's.
__kernel void alone(__global int *out) {
    int i = get_global_id(0), own = i;
    int *p = i & 1 ? (int *)(out + i) : &own;
    int found = kind(p);
    *p = -1;
    out[i] = found + own;
}

// Without a buffer the work-items' numbers are taken.
__kernel void optional(__global int *out, __global const int *given) {
    int i = get_global_id(0);
    out[i] = given ? given[i] : i;
}
