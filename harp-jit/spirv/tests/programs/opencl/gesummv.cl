// alpha A x + beta B x: a group adds up a row.

kernel void sum(global const float *a, global const float *b, global const float *x, global float *y, int size, float alpha,
                float beta, local float2 *sums) {
    int row = get_group_id(0), l = get_local_id(0), items = get_local_size(0);
    float2 own = 0;
    for (int j = l; j < size; j += items)
        own += (float2)(a[row * size + j], b[row * size + j]) * x[j];
    sums[l] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) {
        for (int n = 1; n < items; ++n)
            own += sums[n];
        y[row] = alpha * own.x + beta * own.y;
    }
}
