// Radix sort, four bits at a time: groups count digits, one group adds up the counts, groups move keys in order.

#define DIGITS 16

kernel void count(global const uint *keys, global uint *counts, uint shift) {
    local uint bins[DIGITS];
    uint l = get_local_id(0), groups = get_num_groups(0);
    for (uint digit = l; digit < DIGITS; digit += get_local_size(0))
        bins[digit] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&bins[keys[get_global_id(0)] >> shift & (DIGITS - 1)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint digit = l; digit < DIGITS; digit += get_local_size(0))
        counts[digit * groups + get_group_id(0)] = bins[digit];
}

// Exclusive prefix sums in place (Hillis and Steele, 1986), by one group.
kernel void scan(global uint *counts, uint len, local uint *sums) {
    uint l = get_local_id(0), items = get_local_size(0), before = 0;
    for (uint start = 0; start < len; start += items) {
        uint own = start + l < len ? counts[start + l] : 0;
        sums[l] = own;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint distance = 1; distance < items; distance *= 2) {
            uint other = l >= distance ? sums[l - distance] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            sums[l] += other;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (start + l < len)
            counts[start + l] = before + sums[l] - own;
        before += sums[items - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void permute(global const uint *keys, global uint *sorted, global const uint *starts, uint shift, local uchar *digits) {
    uint l = get_local_id(0), key = keys[get_global_id(0)];
    uchar digit = key >> shift & (DIGITS - 1);
    digits[l] = digit;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint rank = 0;
    for (uint other = 0; other < l; ++other)
        rank += digits[other] == digit;
    sorted[starts[digit * get_num_groups(0) + get_group_id(0)] + rank] = key;
}
