// Products of square matrices: a work-item computes four by four elements, or groups load tiles into their memory.

kernel void blocks(global const float4 *a, global const float4 *b, global float4 *c, uint quads) {
    uint x = get_global_id(0), y = get_global_id(1) * 4;
    float4 sums[4] = {0, 0, 0, 0};
    for (uint k = 0; k < quads; ++k) {
        float4 rows[4];
        for (uint n = 0; n < 4; ++n)
            rows[n] = b[(4 * k + n) * quads + x];
        for (uint n = 0; n < 4; ++n) {
            float4 left = a[(y + n) * quads + k];
            sums[n] += left.x * rows[0] + left.y * rows[1] + left.z * rows[2] + left.w * rows[3];
        }
    }
    for (uint n = 0; n < 4; ++n)
        c[(y + n) * quads + x] = sums[n];
}

#define TILE 4

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void tiles(global const float *a, global const float *b, global float *c, int size) {
    local float left[TILE][TILE], right[TILE][TILE + 1];
    int lx = get_local_id(0), ly = get_local_id(1), x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < size; k += TILE) {
        left[ly][lx] = a[y * size + k + lx];
        right[lx][ly] = b[(k + ly) * size + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = 0; n < TILE; ++n)
            sum = mad(left[ly][n], right[lx][n], sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * size + x] = sum;
}
