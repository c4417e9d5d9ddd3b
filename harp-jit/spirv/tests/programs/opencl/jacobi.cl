// Jacobi's method on a line, many steps in a group's memory, and on a plane, a step a launch.

kernel void line(global float *a, int steps, local float *now, local float *next) {
    int i = get_local_id(0), size = get_local_size(0);
    a += get_group_id(0) * size;
    now[i] = next[i] = a[i];
    for (int step = 0; step < steps; ++step) {
        barrier(CLK_LOCAL_MEM_FENCE);
        local float *from = step & 1 ? next : now, *to = step & 1 ? now : next;
        if (i > 0 && i < size - 1)
            to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
    }
    a[i] = steps & 1 ? next[i] : now[i];
}

kernel void plane(global const float *from, global float *to, int size) {
    int x = get_global_id(0) + 1, y = get_global_id(1) + 1;
    if (x < size - 1 && y < size - 1) {
        int i = y * size + x;
        to[i] = 0.2f * (from[i] + from[i - 1] + from[i + 1] + from[i - size] + from[i + size]);
    }
}
