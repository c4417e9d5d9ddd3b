// D = alpha A B C + beta D (2mm), in double precision.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void first(global const double *a, global const double *b, global double *product, int inner, double alpha) {
    int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);
    double sum = 0;
    for (int k = 0; k < inner; ++k)
        sum += alpha * a[y * inner + k] * b[k * width + x];
    product[y * width + x] = sum;
}

kernel void second(global const double *product, global const double *c, global double *d, int inner, double beta) {
    int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);
    double sum = beta * d[y * width + x];
    for (int k = 0; k < inner; ++k)
        sum += product[y * inner + k] * c[k * width + x];
    d[y * width + x] = sum;
}
