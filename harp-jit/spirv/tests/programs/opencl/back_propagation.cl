// A layer of a neural network: sums over the inputs by groups, activations, and weights that learn with momentum.

kernel void forward(global const float *inputs, global const float *weights, global float *partial, local float *products) {
    int output = get_local_id(0), row = get_local_id(1), outputs = get_local_size(0), rows = get_local_size(1);
    int input = get_global_id(1);
    products[row * outputs + output] = inputs[input] * weights[input * outputs + output];
    for (int distance = 1; distance < rows; distance *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row % (2 * distance) == 0)
            products[row * outputs + output] += products[(row + distance) * outputs + output];
    }
    if (row == 0)
        partial[get_group_id(1) * outputs + output] = products[output];
}

kernel void activate(global const float *partial, global float *outputs, int parts) {
    int output = get_global_id(0), count = get_global_size(0);
    float sum = 0;
    for (int part = 0; part < parts; ++part)
        sum += partial[part * count + output];
    outputs[output] = 1 / (1 + exp(-sum));
}

kernel void adjust(global const float *deltas, global const float *inputs, global float *weights, global float *momenta) {
    int output = get_global_id(0), input = get_global_id(1), i = input * (int)get_global_size(0) + output;
    float change = 0.3f * deltas[output] * inputs[input] + 0.3f * momenta[i];
    weights[i] += change;
    momenta[i] = change;
}
