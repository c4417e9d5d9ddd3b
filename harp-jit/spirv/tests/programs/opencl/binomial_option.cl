// The binomial model of option prices (Cox, Ross and Rubinstein, 1979): a group walks back through an option's tree, a
// work-item for each node of the last step.

typedef struct {
    float price, strike, years;
} Option;

constant float RATE = 0.02f;
constant float VOLATILITY = 0.3f;

kernel void price(global const Option *options, global float *values, int steps, local float *tree) {
    int node = get_local_id(0);
    Option option = options[get_group_id(0)];
    float step = option.years / steps;
    float up = exp(VOLATILITY * sqrt(step)), down = 1 / up, growth = exp(RATE * step);
    float chance = (growth - down) / (up - down);
    float rises = chance / growth, falls = (1 - chance) / growth;
    float last = option.price * exp(VOLATILITY * sqrt(step) * (2 * node - steps));
    tree[node] = fmax(last - option.strike, 0.0f);
    for (int left = steps; left > 0; --left) {
        barrier(CLK_LOCAL_MEM_FENCE);
        float value = 0;
        if (node < left)
            value = rises * tree[node + 1] + falls * tree[node];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (node < left)
            tree[node] = value;
    }
    if (node == 0)
        values[get_group_id(0)] = tree[0];
}
