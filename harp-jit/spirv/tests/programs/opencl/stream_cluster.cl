// Clusters of a stream of points: what each point and each centre would gain if a candidate became a centre.

#define MAX_FEATURES 8

typedef struct {
    float weight, cost;
    int centre;
} Point;

kernel void gain(global const Point *points, global const float *coordinates, global float *lower, constant int *table,
                 global uchar *switches, int count, int features, int candidate, int centres) {
    local float own[MAX_FEATURES];
    int i = get_global_id(0), l = get_local_id(0);
    for (int f = l; f < features; f += get_local_size(0))
        own[f] = coordinates[f * count + candidate];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i >= count)
        return;
    float distance = 0;
    for (int f = 0; f < features; ++f) {
        float d = coordinates[f * count + i] - own[f];
        distance = fma(d, d, distance);
    }
    Point point = points[i];
    float cost = distance * point.weight - point.cost;
    if (cost < 0) {
        switches[i] = 1;
        lower[i * (centres + 1) + centres] = cost;
    } else {
        lower[i * (centres + 1) + table[point.centre]] = -cost;
    }
}
