// Products with a matrix and with its transpose, added to two vectors.

float dot_product(global const float *row, int stride, global const float *y, int size) {
    float sum = 0;
    while (size-- > 0) {
        sum += *row * *y++;
        row += stride;
    }
    return sum;
}

kernel void plain(global const float *a, global float *x, global const float *y, int size) {
    int i = get_global_id(0);
    x[i] += dot_product(a + i * size, 1, y, size);
}

kernel void transposed(global const float *a, global float *x, global const float *y, int size) {
    int i = get_global_id(0);
    x[i] += dot_product(a + i, size, y, size);
}
