// Asian options: each work-item follows four random paths of a price and averages over each. The generator is Marsaglia's
// xorshift with 128 bits ("Xorshift RNGs", 2003) in each component, normal numbers are by Box and Muller (1958).

typedef struct {
    float price, strike, drift, spread;
} Terms;

typedef struct {
    uint4 x, y, z, w;
} Generator;

uint4 next(Generator *g) {
    uint4 t = g->x ^ g->x << 11;
    g->x = g->y;
    g->y = g->z;
    g->z = g->w;
    g->w = g->w ^ g->w >> 19 ^ t ^ t >> 8;
    return g->w;
}

// Above 0, at most 1.
float4 uniform(Generator *g) {
    return (convert_float4(next(g) >> 8) + 1) * 0x1p-24f;
}

kernel void simulate(global const uint4 *seeds, global float4 *payoffs, global float4 *slopes, Terms terms, int steps) {
    size_t i = get_global_id(0);
    Generator g = {seeds[i], seeds[i].yzwx + 362436069u, seeds[i] ^ 521288629u, seeds[i].wxyz + 88675123u};
    float4 price = terms.price, slope = 1, sum = 0, slopes_sum = 0;
    for (int step = 0; step < steps; step += 2) {
        float4 radius = sqrt(-2 * log(uniform(&g))), angle = 2 * M_PI_F * uniform(&g), cosine;
        float4 sine = sincos(angle, &cosine);
        float4 rise = exp(terms.drift + terms.spread * radius * cosine);
        price *= rise;
        slope *= rise;
        sum += price;
        slopes_sum += slope;
        rise = exp(terms.drift + terms.spread * radius * sine);
        price *= rise;
        slope *= rise;
        sum += price;
        slopes_sum += slope;
    }
    float4 average = sum / steps;
    payoffs[i] = fmax(average - terms.strike, 0);
    slopes[i] = select((float4)0, slopes_sum / steps, average > terms.strike);
}
