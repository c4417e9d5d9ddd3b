// C = alpha A B + beta C, with the scalars in a structure, and of 64-bit integers.

typedef struct {
    float alpha, beta;
    int inner;
} Terms;

kernel void floats(global const float *a, global const float *b, global float *c, Terms terms) {
    int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    if (x < width && y < height) {
        float sum = terms.beta * c[y * width + x];
        for (int k = 0; k < terms.inner; ++k)
            sum += terms.alpha * a[y * terms.inner + k] * b[k * width + x];
        c[y * width + x] = sum;
    }
}

kernel void integers(global const long *a, global const long *b, global long *c, int inner, long alpha, long beta) {
    size_t x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);
    long sum = 0;
    for (int k = 0; k < inner; ++k)
        sum += a[y * inner + k] * b[k * width + x];
    c[y * width + x] = alpha * sum + beta * c[y * width + x];
}
