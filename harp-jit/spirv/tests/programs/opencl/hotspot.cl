// Temperatures of a chip: several steps a launch. A group's tile has a border that shrinks by one cell with each step.

#define SIDE 8

kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void heat(global const float *power, global const float *before, global float *after, int columns, int rows, int steps,
          float4 factors) {
    local float now[SIDE][SIDE], next[SIDE][SIDE], source[SIDE][SIDE];
    int lx = get_local_id(0), ly = get_local_id(1), inner = SIDE - 2 * steps;
    int x = (int)get_group_id(0) * inner + lx - steps, y = (int)get_group_id(1) * inner + ly - steps;
    bool inside = x >= 0 && x < columns && y >= 0 && y < rows;
    if (inside) {
        now[ly][lx] = before[y * columns + x];
        source[ly][lx] = power[y * columns + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int north = y > 0 ? ly - 1 : ly, south = y < rows - 1 ? ly + 1 : ly;
    int west = x > 0 ? lx - 1 : lx, east = x < columns - 1 ? lx + 1 : lx;
    bool computed = false;
    for (int step = 1; step <= steps; ++step) {
        computed = inside && min(lx, ly) >= step && max(lx, ly) < SIDE - step;
        if (computed) {
            float own = now[ly][lx];
            next[ly][lx] = own + factors.x * (source[ly][lx]
                + (now[south][lx] + now[north][lx] - 2 * own) * factors.y
                + (now[ly][east] + now[ly][west] - 2 * own) * factors.z
                + (80 - own) * factors.w);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (step < steps) {
            if (computed)
                now[ly][lx] = next[ly][lx];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
    if (computed)
        after[y * columns + x] = next[ly][lx];
}
