// Work-items of a warp that wait for what others of it write.

#pragma OPENCL EXTENSION cl_khr_global_int32_base_atomics : enable

typedef volatile global int *words;

void take(words lock) {
    while (atomic_xchg(lock, 1)) {
    }
}

void give(words lock) {
    atomic_xchg(lock, 0);
}

kernel void held(words lock, words sum) {
    const int id = get_global_id(0);
    while (atomic_cmpxchg(lock, 0, 1) != 0) {
    }
    *sum += id;
    give(lock);
}

kernel void until_done(words lock, words sum) {
    const int id = get_global_id(0);
    int done = 0;
    while (!done) {
        if (atomic_cmpxchg(lock, 0, 1) == 0) {
            *sum += id;
            give(lock);
            done = 1;
        }
    }
}

kernel void left_by_break(words lock, words sum) {
    const int id = get_global_id(0);
    for (;;) {
        if (atomic_cmpxchg(lock, 0, 1) == 0) {
            if (id % 3)
                *sum += id;
            give(lock);
            break;
        }
    }
}

// Locks taken again and again, and two at a time.
kernel void pairs(words locks, words sums) {
    const int id = get_global_id(0);
    for (int i = 0; i < 3; i++) {
        const int a = (id + i) % 4, b = (id + 2 * i + 1) % 4;
        take(locks + min(a, b));
        if (a != b)
            take(locks + max(a, b));
        if (i & 1)
            sums[a] += id;
        else
            sums[b] += 1;
        if (a != b)
            give(locks + max(a, b));
        give(locks + min(a, b));
    }
}

kernel void tickets(words turns, words sum) {
    const int ticket = atomic_inc(turns);
    while (atomic_add(turns + 1, 0) != ticket) {
    }
    *sum += get_global_id(0);
    atomic_inc(turns + 1);
}

// Each waits for the one before, the first for nobody.
kernel void chain(words flags, words sums) {
    const int id = get_global_id(0);
    int before = 0;
    if (id > 0) {
        while (flags[id - 1] == 0) {
        }
        before = sums[id - 1];
    }
    sums[id] = before + id;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    flags[id] = 1;
}

// Others wait for the one that takes the other way.
kernel void beside(words flags, words sums) {
    const int id = get_global_id(0);
    const int first = id - id % 5;
    if (id != first) {
        while (flags[first] == 0) {
        }
        sums[id] = sums[first] + id;
    } else {
        sums[id] = id + 7;
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        flags[id] = 1;
    }
}
