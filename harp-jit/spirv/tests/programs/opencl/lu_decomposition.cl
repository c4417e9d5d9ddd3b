// LU decomposition in blocks: the block on the diagonal, those of its row and column, then all others.

#define BLOCK 4

kernel void diagonal(global float *a, int size, int offset) {
    local float tile[BLOCK][BLOCK];
    int l = get_local_id(0);
    for (int row = 0; row < BLOCK; ++row)
        tile[row][l] = a[(offset + row) * size + offset + l];
    for (int k = 0; k < BLOCK - 1; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l > k) {
            float factor = tile[l][k] / tile[k][k];
            tile[l][k] = factor;
            for (int column = k + 1; column < BLOCK; ++column)
                tile[l][column] -= factor * tile[k][column];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int row = 0; row < BLOCK; ++row)
        a[(offset + row) * size + offset + l] = tile[row][l];
}

// The first half of a group does a block of the row, the second one of the column.
kernel void perimeter(global float *a, int size, int offset) {
    local float corner[BLOCK][BLOCK], right[BLOCK][BLOCK], below[BLOCK][BLOCK];
    int l = get_local_id(0) % BLOCK, other = offset + BLOCK * (1 + (int)get_group_id(0));
    bool is_row = get_local_id(0) < BLOCK;
    for (int row = 0; row < BLOCK; ++row) {
        if (is_row) {
            corner[row][l] = a[(offset + row) * size + offset + l];
            right[row][l] = a[(offset + row) * size + other + l];
        } else {
            below[row][l] = a[(other + row) * size + offset + l];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_row) {
        for (int row = 1; row < BLOCK; ++row) {
            for (int k = 0; k < row; ++k)
                right[row][l] -= corner[row][k] * right[k][l];
        }
    } else {
        for (int column = 0; column < BLOCK; ++column) {
            for (int k = 0; k < column; ++k)
                below[l][column] -= below[l][k] * corner[k][column];
            below[l][column] /= corner[column][column];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int row = 0; row < BLOCK; ++row) {
        if (is_row)
            a[(offset + row) * size + other + l] = right[row][l];
        else
            a[(other + row) * size + offset + l] = below[row][l];
    }
}

kernel void internal(global float *a, int size, int offset) {
    local float left[BLOCK][BLOCK], upper[BLOCK][BLOCK];
    int lx = get_local_id(0), ly = get_local_id(1);
    int x = offset + BLOCK + (int)get_global_id(0), y = offset + BLOCK + (int)get_global_id(1);
    left[ly][lx] = a[y * size + offset + lx];
    upper[ly][lx] = a[(offset + ly) * size + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    for (int k = 0; k < BLOCK; ++k)
        sum += left[ly][k] * upper[k][lx];
    a[y * size + x] -= sum;
}
