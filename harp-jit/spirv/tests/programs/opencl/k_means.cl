// Clusters by k-means: points find their nearest centre, groups add up points in their memory, then centres move.

#define MAX_CENTRES 8
#define FEATURES 3

kernel void assign(global const float *points, global const float *centres, global int *owners, global int *changes,
                   int count, int clusters) {
    int i = get_global_id(0);
    if (i >= count)
        return;
    int best = 0;
    float least = FLT_MAX;
    for (int c = 0; c < clusters; ++c) {
        float distance = 0;
        for (int f = 0; f < FEATURES; ++f) {
            float d = points[f * count + i] - centres[c * FEATURES + f];
            distance += d * d;
        }
        if (distance < least) {
            least = distance;
            best = c;
        }
    }
    if (owners[i] != best) {
        owners[i] = best;
        atomic_inc(changes);
    }
}

// Features have integral values here, so sums are exact.
kernel void add_up(global const float *points, global const int *owners, global int *sums, global int *sizes, int count) {
    local int own_sums[MAX_CENTRES * FEATURES], own_sizes[MAX_CENTRES];
    int i = get_global_id(0), l = get_local_id(0), items = get_local_size(0);
    for (int n = l; n < MAX_CENTRES * FEATURES; n += items)
        own_sums[n] = 0;
    for (int n = l; n < MAX_CENTRES; n += items)
        own_sizes[n] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < count) {
        int owner = owners[i];
        atomic_inc(&own_sizes[owner]);
        for (int f = 0; f < FEATURES; ++f)
            atomic_add(&own_sums[owner * FEATURES + f], convert_int_rte(points[f * count + i]));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = l; n < MAX_CENTRES * FEATURES; n += items)
        atomic_add(&sums[n], own_sums[n]);
    for (int n = l; n < MAX_CENTRES; n += items)
        atomic_add(&sizes[n], own_sizes[n]);
}

kernel void move(global float *centres, global const int *sums, global const int *sizes) {
    int i = get_global_id(0), size = sizes[i / FEATURES];
    if (size > 0)
        centres[i] = (float)sums[i] / size;
}
