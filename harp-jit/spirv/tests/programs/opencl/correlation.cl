// Correlations between the columns of a matrix.

kernel void mean(global const float *data, global float *means, int rows, int columns) {
    int j = get_global_id(0);
    float sum = 0;
    for (int i = 0; i < rows; ++i)
        sum += data[i * columns + j];
    means[j] = sum / rows;
}

kernel void deviation(global const float *data, global const float *means, global float *deviations, int rows, int columns) {
    int j = get_global_id(0);
    float sum = 0;
    for (int i = 0; i < rows; ++i)
        sum += pown(data[i * columns + j] - means[j], 2);
    float result = sqrt(sum / rows);
    deviations[j] = result <= 0.005f ? 1.0f : result;
}

kernel void normalize_all(global float *data, global const float *means, global const float *deviations, int rows, int columns) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i < rows && j < columns)
        data[i * columns + j] = (data[i * columns + j] - means[j]) / (sqrt((float)rows) * deviations[j]);
}

kernel void correlate(global const float *data, global float *result, int rows, int columns) {
    int first = get_global_id(0);
    result[first * columns + first] = 1;
    for (int second = first + 1; second < columns; ++second) {
        float sum = 0;
        for (int i = 0; i < rows; ++i)
            sum += data[i * columns + first] * data[i * columns + second];
        result[first * columns + second] = sum;
        result[second * columns + first] = sum;
    }
}
