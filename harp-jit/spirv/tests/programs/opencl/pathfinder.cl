// The cheapest way through a grid, row by row; a step goes straight on or to a neighbouring column. A group does several
// rows of its part, with a border that it computes twice.

kernel void rows(global const int *wall, global const int *before, global int *after, int columns, int first, int count,
                 local int *costs, local int *next) {
    int l = get_local_id(0), items = get_local_size(0);
    int x = (int)get_group_id(0) * (items - 2 * count) - count + l;
    bool inside = x >= 0 && x < columns;
    costs[l] = inside ? before[x] : INT_MAX;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int row = 0; row < count; ++row) {
        if (inside) {
            int best = costs[l];
            if (l > 0)
                best = min(best, costs[l - 1]);
            if (l < items - 1)
                best = min(best, costs[l + 1]);
            next[l] = best + wall[(first + row) * columns + x];
        } else {
            next[l] = INT_MAX;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        local int *other = costs;
        costs = next;
        next = other;
    }
    if (inside && l >= count && l < items - count)
        after[x] = costs[l];
}
