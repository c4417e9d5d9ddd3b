// options: -cl-std=CL2.0
// What work-groups and subgroups do together, pointers to any memory, and variables of the program.
#pragma OPENCL EXTENSION cl_khr_subgroups : enable

kernel void whole_groups(global const int *x, global const float *f, global int *out, global float *floats) {
    size_t i = get_global_id(0);
    int n = x[i];
    global int *o = out + 12 * i;
    o[0] = work_group_reduce_add(n);
    o[1] = work_group_reduce_min(n);
    o[2] = work_group_reduce_max((uint)n);
    o[3] = work_group_scan_inclusive_add(n);
    o[4] = work_group_scan_exclusive_add(n);
    o[5] = work_group_scan_inclusive_max(n);
    o[6] = work_group_scan_exclusive_min(n);
    o[7] = work_group_broadcast(n, 2);
    o[8] = work_group_all(n > -20);
    o[9] = work_group_all(n > 0);
    o[10] = work_group_any(n > 30);
    o[11] = (int)get_enqueued_local_size(0) * 1000 + (int)get_global_linear_id();
    floats[2 * i] = work_group_reduce_add(f[i]);
    floats[2 * i + 1] = work_group_scan_exclusive_max(f[i]);
}

kernel void subgroups(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    int n = x[i];
    global int *o = out + 16 * i;
    o[0] = get_sub_group_size();
    o[1] = get_max_sub_group_size();
    o[2] = get_num_sub_groups();
    o[3] = get_sub_group_id();
    o[4] = get_sub_group_local_id();
    o[5] = sub_group_reduce_add(n);
    o[6] = sub_group_reduce_max(n);
    o[7] = sub_group_scan_inclusive_add(n);
    o[8] = sub_group_scan_exclusive_add(n);
    o[9] = sub_group_scan_exclusive_min(n);
    o[10] = sub_group_broadcast(n, 0);
    o[11] = sub_group_all(n > 0);
    o[12] = sub_group_any(n > 30);
    if (n & 1) o[13] = sub_group_scan_inclusive_add(n);
    else o[13] = -sub_group_reduce_add(n);
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
    o[14] = 0;
    o[15] = 0;
}

int sum_of(int *values, int count) {
    int sum = 0;
    for (int k = 0; k < count; k++) sum += values[k];
    return sum;
}

global int counter = 5;
global int numbers[4] = {1, 2, 3, 4};
global int *global pointer = &numbers[1];

kernel void generic_pointers(global int *x, global int *out, local int *shared) {
    size_t i = get_global_id(0), l = get_local_id(0);
    int own[3] = {(int)i, 2, 3};
    shared[l] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    int *any = i % 3 == 0 ? own : i % 3 == 1 ? (int *)x : (int *)shared;
    out[i] = sum_of(any, 3) + 1000 * pointer[1] + 100000 * sum_of(numbers, 4);
    if (i == 0) counter += 10;
}

kernel void atomic_objects(global atomic_int *cells, global int *out, global atomic_flag *flag) {
    int i = get_global_id(0);
    atomic_fetch_add(&cells[0], i);
    atomic_fetch_max_explicit(&cells[1], i, memory_order_relaxed, memory_scope_device);
    int expected = 0;
    bool won = atomic_compare_exchange_strong(&cells[2], &expected, i + 1);
    out[2 * i] = won;
    out[2 * i + 1] = expected;
    atomic_store(&cells[3], 42);
    if (!atomic_flag_test_and_set(flag)) atomic_fetch_or(&cells[4], 8);
    out[2 * i] += 10 * atomic_load(&cells[3]);
}
