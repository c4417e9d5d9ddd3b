// Gaussian elimination: one kernel computes a column of multipliers, one subtracts rows.

kernel void multipliers(global const float *a, global float *m, int size, int pivot) {
    int row = get_global_id(0) + pivot + 1;
    if (row < size)
        m[row * size + pivot] = a[row * size + pivot] / a[pivot * size + pivot];
}

kernel void subtract(global float *a, global float *b, global const float *m, int size, int pivot) {
    int column = get_global_id(0) + pivot, row = get_global_id(1) + pivot + 1;
    if (column >= size || row >= size)
        return;
    float factor = m[row * size + pivot];
    a[row * size + column] -= factor * a[pivot * size + column];
    if (column == pivot)
        b[row] -= factor * b[pivot];
}
