// An orthonormal basis of a matrix's columns: norms by one group, then two kernels a column.

kernel void norm(global const float *a, global float *r, int rows, int columns, int k, local float *sums) {
    int l = get_local_id(0);
    float sum = 0;
    for (int i = l; i < rows; i += get_local_size(0))
        sum += a[i * columns + k] * a[i * columns + k];
    sums[l] = sum;
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < half_size)
            sums[l] += sums[l + half_size];
    }
    if (l == 0)
        r[k * columns + k] = sqrt(sums[0]);
}

kernel void divide(global const float *a, global const float *r, global float *q, int rows, int columns, int k) {
    int i = get_global_id(0);
    if (i < rows)
        q[i * columns + k] = a[i * columns + k] / r[k * columns + k];
}

kernel void project(global float *a, global float *r, global const float *q, int rows, int columns, int k) {
    int j = get_global_id(0);
    if (j <= k || j >= columns)
        return;
    float sum = 0;
    for (int i = 0; i < rows; ++i)
        sum += q[i * columns + k] * a[i * columns + j];
    r[k * columns + j] = sum;
    for (int i = 0; i < rows; ++i)
        a[i * columns + j] -= q[i * columns + k] * sum;
}
