// What nothing changes while a kernel runs, because the language says so or a parameter promises it.

constant int weights[4] = {1, 10, 100, 1000};

kernel void from_constant(constant int *sizes, global int *out) {
    int i = get_global_id(0), sum = 0;
    for (int round = 0; round < sizes[1]; round++)
        sum += weights[round & 3] * i;
    out[i] = sum;
}

kernel void from_restricted(global const int *restrict sizes, global int *out) {
    int i = get_global_id(0), sum = 0;
    for (int round = 0; round < sizes[1]; round++)
        sum += weights[round & 3] * i;
    out[i] = sum;
}

// Another work-item may change how often this one goes round.
kernel void from_global(global const int *sizes, global int *out) {
    int i = get_global_id(0), sum = 0;
    for (int round = 0; round < sizes[1]; round++)
        sum += weights[round & 3] * i;
    out[i] = sum;
}
