// Bitonic sorting (Batcher, 1968): a launch for each pass over global memory, and one kernel that sorts within groups.

void order(uint *a, uint *b, bool ascending) {
    if ((*a > *b) == ascending) {
        uint c = *a;
        *a = *b;
        *b = c;
    }
}

kernel void pass(global uint *data, uint stage, uint step, uint ascending) {
    uint i = get_global_id(0);
    uint distance = 1u << (stage - step);
    uint left = i % distance + i / distance * 2 * distance, right = left + distance;
    bool up = (i >> stage & 1) != ascending;
    uint a = data[left], b = data[right];
    order(&a, &b, up);
    data[left] = a;
    data[right] = b;
}

kernel void sort_groups(global uint *data, local uint *part) {
    uint l = get_local_id(0), items = get_local_size(0);
    size_t start = get_group_id(0) * 2 * items;
    part[l] = data[start + l];
    part[l + items] = data[start + l + items];
    for (uint size = 2; size <= 2 * items; size *= 2) {
        for (uint distance = size / 2; distance > 0; distance /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            uint left = 2 * l - (l & (distance - 1));
            uint a = part[left], b = part[left + distance];
            order(&a, &b, (left & size) == 0);
            part[left] = a;
            part[left + distance] = b;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    data[start + l] = part[l];
    data[start + l + items] = part[l + items];
}
