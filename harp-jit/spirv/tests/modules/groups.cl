// Work-groups: their memory, barriers, copies, atomic operations, and all ids.

kernel void tiles(global const int *in, global int *out, local int *tile) {
    local int sums[2];
    local struct { int count; float4 color; } shared;
    size_t l = get_local_id(0), n = get_local_size(0);
    tile[l] = in[get_global_id(0)];
    if (l == 0) {
        sums[0] = sums[1] = 0;
        shared.count = 0;
        shared.color = (float4)(1, 2, 3, 4);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&sums[l & 1], tile[n - 1 - l]);
    atomic_inc(&shared.count);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tile[(l + 1) % n] + 1000 * sums[0] + 1000000 * sums[1] + shared.count
        + (int)shared.color.w;
}

kernel void async(global const float4 *in, global float4 *out, local float4 *tile, int stride) {
    size_t n = get_local_size(0), g = get_group_id(0);
    event_t e = async_work_group_copy(tile, in + g * n, n, 0);
    e = async_work_group_strided_copy(tile + n, in, n, stride, e);
    wait_group_events(1, &e);
    size_t l = get_local_id(0);
    tile[l] += tile[n + (l + 1) % n];
    barrier(CLK_LOCAL_MEM_FENCE);
    e = async_work_group_copy(out + g * n, tile, n, 0);
    wait_group_events(1, &e);
}

kernel void atomics(global int *cells, global uint *unsigned_cells, global int *old, global float *swapped) {
    int i = get_global_id(0);
    atomic_add(&cells[0], i);
    atomic_sub(&cells[1], i);
    atomic_min(&cells[2], -i);
    atomic_max(&cells[3], i);
    atomic_and(&cells[4], ~(1 << (i & 31)));
    atomic_or(&cells[5], 1 << (i & 31));
    atomic_xor(&cells[6], i);
    old[i] = atomic_inc(&cells[7]);
    atomic_dec(&cells[8]);
    atomic_min(&unsigned_cells[0], (uint)-i);
    atomic_max(&unsigned_cells[1], (uint)-i);
    atomic_cmpxchg(&cells[9], 0, i + 1);
    atomic_xchg(&cells[10], 7);
    atomic_xchg(swapped, 2.5f);
}

kernel void ids(global uint *out) {
    size_t at = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
    global uint *o = out + at * 24;
    for (int d = 0; d < 3; d++) {
        o[d] = get_global_id(d);
        o[3 + d] = get_local_id(d);
        o[6 + d] = get_group_id(d);
        o[9 + d] = get_local_size(d);
        o[12 + d] = get_num_groups(d);
        o[15 + d] = get_global_size(d);
        o[18 + d] = get_global_offset(d);
    }
    o[21] = get_work_dim();
}

// There are three dimensions at most.
kernel void beyond(global uint *out, int dim) {
    uint given[] = {get_global_id(dim), get_local_id(dim), get_group_id(dim), get_global_offset(dim),
                    get_global_size(dim), get_local_size(dim), get_num_groups(dim), get_local_size(3), get_group_id(4)};
    for (int n = 0; n < 9; n++)
        out[n] = given[n];
}

void add_up(local int *sums, int value) {
    barrier(CLK_LOCAL_MEM_FENCE);
    int l = get_local_id(0);
    sums[l] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
}

kernel void prefix(global const int *in, global int *out, local int *sums) {
    int l = get_local_id(0);
    int sum = in[get_global_id(0)];
    add_up(sums, sum);
    for (int step = 1; step < get_local_size(0); step *= 2) {
        int before = l >= step ? sums[l - step] : 0;
        sum += before;
        add_up(sums, sum);
    }
    out[get_global_id(0)] = sum;
}

kernel void elect(global int *out, volatile local int *winner) {
    *winner = get_local_id(0);
    out[get_global_id(0)] = *winner;
}

// Compilers store sums in one place, before the barrier: work-items come there by an outer loop if they have a new sum, by an
// inner one if not.
kernel void tree(global const int *in, global int *out, local int *sums) {
    int l = get_local_id(0);
    sums[l] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int span = 1; span < get_local_size(0); span *= 2) {
        if (l % (2 * span) == 0)
            sums[l] += sums[l + span];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = sums[l];
}

// Changes elements that the group has not finished to copy.
kernel void early(global const int *in, global int *out, local int *tile) {
    size_t l = get_local_id(0), n = get_local_size(0);
    event_t e = async_work_group_copy(tile, in, n, 0);
    tile[l] = l;
    wait_group_events(1, &e);
    out[l] = tile[l];
}

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

// Atomic operations on 8 bytes, whose upper and lower halves depend on each other.
kernel void wide_atomics(global long *p, global ulong *q, global long *seen) {
    long i = get_global_id(0);
    seen[i] = atom_add(p, 0x100000001L * (i + 1));
    atom_max(p + 1, (i - 50) << 33);
    atom_min(p + 2, (50 - i) << 33);
    ulong old = 0, given;
    if (i % 3)
        do {
            given = old;
            old = atom_cmpxchg(q, given, given + 0x100000001UL);
        } while (old != given);
    atom_inc(q + 1);
    atom_or(q + 2, 1UL << (i & 63));
    atom_xor(q + 3, ~0UL >> (i & 63));
}

// What work-items pass to each other over barriers that order the one memory, the other, both or none.

#define PASSED(name, wait) \
    kernel void name(global int *data, local int *tile, global int *out) { \
        size_t i = get_global_id(0), l = get_local_id(0), other = get_local_size(0) - 1 - l; \
        tile[l] = data[i] = (int)l; \
        wait; \
        out[i] = tile[other] + data[i - l + other]; \
    }

PASSED(passed_local, barrier(CLK_LOCAL_MEM_FENCE))
PASSED(passed_global, barrier(CLK_GLOBAL_MEM_FENCE))
PASSED(passed_both, barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE))
PASSED(passed_none, barrier(0))
PASSED(passed_with_fence, mem_fence(CLK_GLOBAL_MEM_FENCE); barrier(CLK_LOCAL_MEM_FENCE))

kernel void dimensions(global uint *o) {
    o[get_global_id(0)] = get_work_dim();
}

kernel void neighbours(global int *out, int distance) {
    local int first[4], second[4];
    int i = get_local_id(0);
    first[i] = i;
    second[i] = 10;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = first[i + distance] + second[i];
}

// On one side of a branch work-items may leave the loop or the kernel before the barrier, which none does unless `limit` is large.

kernel void may_break(global int *out, local int *tile, int limit) {
    int l = get_local_id(0), n = get_local_size(0), x = l;
    for (int i = 0; i < 3; i++) {
        if (l & 1) {
            x += i;
            if (limit > 100)
                break;
        } else {
            do {
                x += 3;
                if (limit > 90)
                    return;
            } while (x % 5);
        }
        tile[l] = x;
        barrier(CLK_LOCAL_MEM_FENCE);
        x += tile[(l + 1) % n];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[get_global_id(0)] = x;
}

kernel void may_return(global int *out, local int *tile, int limit) {
    int l = get_local_id(0), n = get_local_size(0), x = l;
    if (l > n / 4) {
        x *= 2;
        if (limit > 100)
            return;
        x += 7;
    }
    tile[l] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = x + tile[n - 1 - l];
}
