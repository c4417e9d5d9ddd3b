// Particles in boxes: forces between those of a box and of its neighbours, with a cut-off by an exponential.

#define PARTICLES 8

typedef struct {
    int first;
    int neighbours;
    int others[8];
} Box;

kernel __attribute__((reqd_work_group_size(PARTICLES, 1, 1)))
void forces(global const Box *boxes, global const float4 *positions, global const float *charges, global float4 *forces, float alpha) {
    local float4 other_positions[PARTICLES];
    local float other_charges[PARTICLES];
    int l = get_local_id(0);
    global const Box *home = &boxes[get_group_id(0)];
    float4 own = positions[home->first + l], force = 0;
    for (int n = -1; n < home->neighbours; ++n) {
        int first = n < 0 ? home->first : boxes[home->others[n]].first;
        other_positions[l] = positions[first + l];
        other_charges[l] = charges[first + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < PARTICLES; ++p) {
            float3 d = own.xyz - other_positions[p].xyz;
            float potential = exp(-2 * alpha * alpha * dot(d, d));
            force.w += other_charges[p] * potential;
            force.xyz += other_charges[p] * 2 * potential * d;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    forces[home->first + l] = force;
}
