// Diffusion that reduces speckle in pictures (Yu and Acton, 2002): sums over the picture, then two kernels a step.

kernel void extract(global float *picture) {
    size_t i = get_global_id(0);
    picture[i] = exp(picture[i] / 255);
}

kernel void compress(global float *picture) {
    size_t i = get_global_id(0);
    picture[i] = log(picture[i]) * 255;
}

// The sum of values and of their squares, a pair for each group.
kernel void sums(global const float *picture, global float2 *partial, local float2 *pairs) {
    size_t l = get_local_id(0);
    float value = picture[get_global_id(0)];
    pairs[l] = (float2)(value, value * value);
    for (size_t half_size = get_local_size(0) / 2; half_size > 0; half_size >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < half_size)
            pairs[l] += pairs[l + half_size];
    }
    if (l == 0)
        partial[get_group_id(0)] = pairs[0];
}

typedef struct {
    float north, south, west, east;
} Differences;

kernel void coefficients(global const float *picture, global Differences *differences, global float *c, int columns, int rows,
                         float speckle) {
    int i = get_global_id(0), x = i % columns, y = i / columns;
    float own = picture[i];
    Differences d;
    d.north = picture[max(y - 1, 0) * columns + x] - own;
    d.south = picture[min(y + 1, rows - 1) * columns + x] - own;
    d.west = picture[y * columns + max(x - 1, 0)] - own;
    d.east = picture[y * columns + min(x + 1, columns - 1)] - own;
    float squares = (d.north * d.north + d.south * d.south + d.west * d.west + d.east * d.east) / (own * own);
    float laplacian = (d.north + d.south + d.west + d.east) / own;
    float numerator = 0.5f * squares - laplacian * laplacian / 16, denominator = 1 + 0.25f * laplacian;
    float variation = numerator / (denominator * denominator);
    c[i] = clamp(1 / (1 + (variation - speckle) / (speckle * (1 + speckle))), 0.0f, 1.0f);
    differences[i] = d;
}

kernel void diffuse(global float *picture, global const Differences *differences, global const float *c, int columns, int rows,
                    float lambda) {
    int i = get_global_id(0), x = i % columns, y = i / columns;
    float south = c[min(y + 1, rows - 1) * columns + x], east = c[y * columns + min(x + 1, columns - 1)];
    Differences d = differences[i];
    picture[i] += 0.25f * lambda * (c[i] * (d.north + d.west) + south * d.south + east * d.east);
}
