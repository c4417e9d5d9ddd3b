// C = alpha A A' + beta C in the lower triangle, and with two matrices.

kernel void one(global const float *a, global float *c, int inner, float alpha, float beta) {
    int j = get_global_id(0), i = get_global_id(1), size = get_global_size(0);
    if (j > i)
        return;
    float sum = c[i * size + j] * beta;
    for (int k = 0; k < inner; ++k)
        sum += alpha * a[i * inner + k] * a[j * inner + k];
    c[i * size + j] = sum;
}

kernel void two(global const float *a, global const float *b, global float *c, int inner, float alpha, float beta) {
    int j = get_global_id(0), i = get_global_id(1), size = get_global_size(0);
    if (j > i)
        return;
    float sum = c[i * size + j] * beta;
    for (int k = 0; k < inner; ++k)
        sum += alpha * (a[i * inner + k] * b[j * inner + k] + b[i * inner + k] * a[j * inner + k]);
    c[i * size + j] = sum;
}
