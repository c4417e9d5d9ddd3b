// A particle filter: particles move at random, weigh how well they fit a measurement, and are drawn again by weight.

// Numerical Recipes' constants for a linear congruential generator; a number between 0 and 1, not 0.
float uniform(uint *state) {
    *state = *state * 1664525u + 1013904223u;
    return ((*state >> 8) + 1) * 0x1p-24f;
}

float normal(uint *state) {
    float radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * M_PI_F * uniform(state));
}

kernel void weigh(global float2 *particles, global uint *seeds, global float *weights, float2 speed, float2 measured) {
    int i = get_global_id(0);
    uint state = seeds[i];
    float2 p = particles[i] + speed;
    p.x += normal(&state);
    p.y += 2 * normal(&state);
    seeds[i] = state;
    particles[i] = p;
    float d = distance(p, measured);
    weights[i] = exp(-0.5f * d * d / 25);
}

// Inclusive prefix sums by one work-item.
kernel void add_up(global const float *weights, global float *sums, int count) {
    float sum = 0;
    for (int i = 0; i < count; ++i) {
        sum += weights[i];
        sums[i] = sum;
    }
}

kernel void draw(global const float2 *particles, global const float *sums, global float2 *drawn, global int *indices, int count,
                 float first) {
    int i = get_global_id(0);
    float wanted = (first + i) / count * sums[count - 1];
    int index = count - 1;
    for (int n = 0; n < count; ++n) {
        if (sums[n] >= wanted) {
            index = n;
            break;
        }
    }
    indices[i] = index;
    drawn[i] = particles[index];
}
