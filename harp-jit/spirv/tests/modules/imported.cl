// clang-22 options: -cl-std=CL2.0
// What LLVM's own back end for SPIR-V leaves as functions of others, and what else it writes in its own way.

kernel void atomics(global int *cells, global uint *more, global long *wide, global float *swapped,
                    global atomic_int *object, global int *old) {
    int i = get_global_id(0);
    atomic_inc(&cells[0]);
    atomic_dec(&cells[1]);
    atomic_min(&cells[2], -i);
    atomic_max(&cells[3], i);
    atomic_xchg(&cells[4], 7);
    atomic_min(&more[0], (uint)-i);
    atomic_max(&more[1], (uint)-i);
    atom_max(&wide[0], (long)i << 33);
    atom_min((volatile global ulong *)&wide[1], (ulong)-i);
    atomic_xchg(swapped, 2.5f);
    atomic_fetch_min_explicit(&object[0], -i, memory_order_relaxed, memory_scope_device);
    old[i] = atomic_inc(&cells[5]);
    mem_fence(CLK_GLOBAL_MEM_FENCE);
}

kernel void numbers(global const int *x, global const ulong *y, global const float *f, global double *out) {
    int i = get_global_id(0);
    global double *o = out + 8 * i;
    o[0] = convert_double(x[i]);
    o[1] = convert_double((uint)x[i]);
    o[2] = convert_double(f[i]);
    o[3] = convert_double(y[i]);
    o[4] = convert_double_rtz(y[i]);
    o[5] = convert_double_rtp(y[i]);
    vstore2(convert_double2((char2)((char)x[i], (char)(x[i] >> 8))), 3, o);
}

// 1 for a work-item's own memory, 2 for that of its work-group, 4 for that of all; the same by the flags of fences.
int kind(int *p) {
    int known = (to_private(p) ? 1 : 0) + (to_local(p) ? 2 : 0) + (to_global(p) ? 4 : 0);
    return known + 10 * (int)get_fence(p);
}

kernel void kinds(global int *x, global int *out) {
    local int shared;
    int i = get_global_id(0), own = i;
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
    int *p = i % 3 == 0 ? &own : i % 3 == 1 ? (int *)&shared : (int *)(x + i);
    out[i] = kind(p);
}

// Pointers in variables, and one that is null in a constant.
kernel void pointers(global const int *x, global int *out) {
    int i = get_global_id(0), first = i, second = 2 * i;
    int *of[3] = {&first, 0, &second};
    *of[i % 2 * 2] += x[i];
    out[2 * i] = first + 1000 * second;
    int4 v = (int4)(x[i], i, -i, 0);
    out[2 * i + 1] = any(v > 3) + 10 * all(v > -3) + (of[1] ? 100 : 0);
}

// A large array of a work-item's own, and calls of functions.
kernel void large(global float *out) {
    int i = get_global_id(0);
    float own[5000];
    for (int k = 0; k < 5000; k++) own[k] = remainder((float)(k + i), 7.0f);
    float sum = 0;
    for (int k = 0; k < 5000; k += 11) sum += own[(k * 13 + i) % 5000] * (float)(k % 4);
    out[i] = sum;
}
