// A picture convolved with a mask; outside of the picture is nothing. Also in two passes, for masks that are products.

kernel void convolve(global const uint *input, global uint *output, global const float *mask, uint2 size, uint2 mask_size) {
    uint i = get_global_id(0), x = i % size.x, y = i / size.x;
    uint2 half_size = (mask_size - 1) / 2;
    uint left = x < half_size.x ? 0 : x - half_size.x, right = min(x + half_size.x, size.x - 1);
    uint top = y < half_size.y ? 0 : y - half_size.y, bottom = min(y + half_size.y, size.y - 1);
    float sum = 0;
    for (uint row = top; row <= bottom; ++row) {
        uint first = (row + half_size.y - y) * mask_size.x + half_size.x - x;
        for (uint column = left; column <= right; ++column)
            sum += input[row * size.x + column] * mask[first + column];
    }
    output[i] = convert_uint_sat_rte(sum);
}

kernel void rows(global const uchar4 *input, global float4 *output, constant float *mask, int radius) {
    int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0);
    float4 sum = 0;
    for (int n = -radius; n <= radius; ++n)
        sum += mask[n + radius] * convert_float4(input[y * width + clamp(x + n, 0, width - 1)]);
    output[y * width + x] = sum;
}

kernel void columns(global const float4 *input, global uchar4 *output, constant float *mask, int radius) {
    int x = get_global_id(0), y = get_global_id(1), width = get_global_size(0), height = get_global_size(1);
    float4 sum = 0;
    for (int n = -radius; n <= radius; ++n)
        sum += mask[n + radius] * input[clamp(y + n, 0, height - 1) * width + x];
    output[y * width + x] = convert_uchar4_sat_rte(sum);
}
