// Alignment of two sequences (Needleman and Wunsch, 1970): tiles along a diagonal of the table are independent, and so
// are cells along a diagonal of a tile.

#define TILE 8

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void diagonal(global const char *down, global const char *across, constant char *scores, global int *table, int width,
              int number, int first, int penalty) {
    local int cells[TILE + 1][TILE + 1];
    int l = get_local_id(0), tile_x = first + (int)get_group_id(0), tile_y = number - tile_x;
    int x = tile_x * TILE, y = tile_y * TILE;
    cells[l + 1][0] = table[(y + l + 1) * width + x];
    cells[0][l + 1] = table[y * width + x + l + 1];
    if (l == 0)
        cells[0][0] = table[y * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 0; step < 2 * TILE - 1; ++step) {
        int cx = l, cy = step - l;
        if (cy >= 0 && cy < TILE) {
            int matched = cells[cy][cx] + scores[down[y + cy] * 4 + across[x + cx]];
            cells[cy + 1][cx + 1] = max(matched, max(cells[cy][cx + 1], cells[cy + 1][cx]) - penalty);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int row = 1; row <= TILE; ++row)
        table[(y + row) * width + x + l + 1] = cells[row][l + 1];
}
