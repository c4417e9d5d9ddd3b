// The places nearest to one: distances on a plane, then the least of each group with its index.

typedef struct {
    float latitude, longitude;
} Place;

kernel void distances(global const Place *places, global float *distances, int count, Place target) {
    int i = get_global_id(0);
    if (i < count) {
        float2 away = (float2)(places[i].latitude - target.latitude, places[i].longitude - target.longitude);
        distances[i] = length(away);
    }
}

typedef struct {
    float distance;
    int index;
} Candidate;

kernel void nearest(global const float *distances, global Candidate *best, int count, local Candidate *candidates) {
    int i = get_global_id(0), l = get_local_id(0);
    candidates[l].distance = i < count ? distances[i] : INFINITY;
    candidates[l].index = i;
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < half_size && candidates[l + half_size].distance < candidates[l].distance)
            candidates[l] = candidates[l + half_size];
    }
    if (l == 0)
        best[get_group_id(0)] = candidates[0];
}
