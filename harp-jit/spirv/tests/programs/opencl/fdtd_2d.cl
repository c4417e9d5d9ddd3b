// Electric and magnetic fields in two dimensions by finite differences in the time domain.

kernel void electric_y(global const float *source, global float *ey, global const float *hz, int columns, int step) {
    int x = get_global_id(0), y = get_global_id(1), i = y * columns + x;
    if (y == 0)
        ey[i] = source[step];
    else
        ey[i] -= 0.5f * (hz[i] - hz[i - columns]);
}

kernel void electric_x(global float *ex, global const float *hz, int columns) {
    int x = get_global_id(0), y = get_global_id(1), i = y * columns + x;
    if (x > 0)
        ex[i] -= 0.5f * (hz[i] - hz[i - 1]);
}

kernel void magnetic(global const float *ex, global const float *ey, global float *hz, int columns, int rows) {
    int x = get_global_id(0), y = get_global_id(1), i = y * columns + x;
    if (x < columns - 1 && y < rows - 1)
        hz[i] -= 0.7f * (ex[i + 1] - ex[i] + ey[i + columns] - ey[i]);
}
