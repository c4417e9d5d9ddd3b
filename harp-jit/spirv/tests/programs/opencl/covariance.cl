// Covariances between the columns of a matrix, in double precision; a group subtracts a column's mean.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void centre(global double *data, int rows, int columns, local double *sums) {
    int column = get_group_id(0), l = get_local_id(0), items = get_local_size(0);
    double sum = 0;
    for (int i = l; i < rows; i += items)
        sum += data[i * columns + column];
    sums[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) {
        for (int n = 1; n < items; ++n)
            sums[0] += sums[n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    double mean = sums[0] / rows;
    for (int i = l; i < rows; i += items)
        data[i * columns + column] -= mean;
}

kernel void covary(global const double *data, global double *result, int rows, int columns) {
    int first = get_global_id(0), second = get_global_id(1);
    if (first > second)
        return;
    double sum = 0;
    for (int i = 0; i < rows; ++i)
        sum += data[i * columns + first] * data[i * columns + second];
    result[first * columns + second] = result[second * columns + first] = sum / (rows - 1);
}
