// The two products of a step of the biconjugate gradient method, four columns or rows at a time.

kernel void by_columns(global const float *a, global const float *r, global float *s, int rows) {
    int quad = get_global_id(0), quads = get_global_size(0);
    float4 sum = 0;
    for (int i = 0; i < rows; ++i)
        sum += r[i] * vload4(i * quads + quad, a);
    vstore4(sum, quad, s);
}

kernel void by_rows(global const float *a, global const float *p, global float *q, int quads) {
    int row = get_global_id(0);
    float4 sum = 0;
    for (int quad = 0; quad < quads; ++quad)
        sum += vload4(row * quads + quad, a) * vload4(quad, p);
    q[row] = sum.s0 + sum.s1 + sum.s2 + sum.s3;
}
