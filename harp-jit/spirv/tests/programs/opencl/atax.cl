// The transpose of A times A x.

kernel void times(global const float *a, global const float *x, global float *t, int rows, int columns) {
    int row = get_global_id(0);
    if (row < rows) {
        float sum = 0;
        for (int j = 0; j < columns; ++j)
            sum += a[row * columns + j] * x[j];
        t[row] = sum;
    }
}

kernel void transposed(global const float *a, global const float *t, global float *y, int rows, int columns) {
    int column = get_global_id(0);
    if (column < columns) {
        float sum = 0;
        for (int i = 0; i < rows; ++i)
            sum += a[i * columns + column] * t[i];
        y[column] = sum;
    }
}
