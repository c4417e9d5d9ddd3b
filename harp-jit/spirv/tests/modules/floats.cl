// Floats of 32 and 64 bits, and halves in memory.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define FLOATS(F, I, U) \
    kernel void ops_##F(global const F *x, global const F *y, global F *out, global I *ints) { \
        size_t i = get_global_id(0); \
        F a = x[i], b = y[i]; \
        global F *o = out + 16 * i; \
        o[0] = a + b; \
        o[1] = a - b; \
        o[2] = a * b; \
        o[3] = a / b; \
        o[4] = -a; \
        o[5] = (F)(I)a; \
        o[6] = (F)(uchar)fabs(b); \
        o[7] = fmin(a, b); \
        o[8] = fmax(a, b); \
        o[9] = fabs(a); \
        o[10] = copysign(a, b); \
        o[11] = clamp(a, (F)-1, (F)2); \
        o[12] = step(a, b); \
        o[13] = sign(a); \
        o[14] = mix(a, b, (F)0.25); \
        o[15] = degrees(a) + radians(b); \
        global I *n = ints + 12 * i; \
        n[0] = a < b; \
        n[1] = a <= b; \
        n[2] = a == b; \
        n[3] = a != b; \
        n[4] = a > b ? 3 : 4; \
        n[5] = isnan(a); \
        n[6] = isinf(b); \
        n[7] = isfinite(a); \
        n[8] = isnormal(b); \
        n[9] = signbit(a) != 0; \
        n[10] = isunordered(a, b); \
        n[11] = islessgreater(a, b); \
    }

FLOATS(float, int, uint)
FLOATS(double, long, ulong)

kernel void halves(global const float *x, global half *h, global float *back) {
    size_t i = get_global_id(0);
    vstore_half(x[i], 5 * i, h);
    vstore_half_rtz(x[i], 5 * i + 1, h);
    vstore_half_rtp(x[i], 5 * i + 2, h);
    vstore_half_rtn(x[i], 5 * i + 3, h);
    vstore_half_rte(x[i], 5 * i + 4, h);
    back[i] = vload_half(5 * i, h);
}

kernel void half_vectors(global const float *x, global half *h, global half *aligned, global float *back) {
    size_t i = get_global_id(0);
    vstore_half3(vload3(i, x), i, h);
    vstorea_half3(vload3(i, x), i, aligned);
    vstore3(vload_half3(i, h) + vloada_half3(i, aligned), i, back);
}

kernel void half_from_double(global const double *x, global half *h) {
    size_t i = get_global_id(0);
    vstore_half(x[i], i, h);
}

kernel void half_arithmetic(global const half *x, global const half *y, global half *out) {
    size_t i = get_global_id(0);
    out[4 * i] = x[i] + y[i];
    out[4 * i + 1] = x[i] * y[i];
    out[4 * i + 2] = x[i] / y[i];
    out[4 * i + 3] = isnormal(x[i]) ? x[i] < y[i] ? x[i] : -y[i] : y[i];
}

kernel void half_arguments(global half *x, half factor, half2 ends) {
    size_t i = get_global_id(0);
    x[i] = fmin(fmax(x[i] * factor, ends.x), ends.y);
}

kernel void rounded(global const int *x, global const ulong *y, global float *out, global const double *d) {
    size_t i = get_global_id(0);
    global float *o = out + 12 * i;
    o[0] = convert_float_rtz(x[i]);
    o[1] = convert_float_rtp(x[i]);
    o[2] = convert_float_rtn(x[i]);
    o[3] = convert_float_rte(x[i]);
    o[4] = convert_float_rtz(y[i]);
    o[5] = convert_float_rtp(y[i]);
    o[6] = convert_float_rtn(y[i]);
    o[7] = convert_float(y[i]);
    o[8] = convert_float_rtz(d[i]);
    o[9] = convert_float_rtp(d[i]);
    o[10] = convert_float_rtn(d[i]);
    o[11] = convert_float(d[i]);
}

kernel void to_integers(global const float *x, global int *out) {
    size_t i = get_global_id(0);
    global int *o = out + 8 * i;
    o[0] = convert_int_rte(x[i]);
    o[1] = convert_int_rtp(x[i]);
    o[2] = convert_int_rtn(x[i]);
    o[3] = convert_int_sat(x[i] * 1e9f);
    o[4] = convert_uint_sat_rtn(x[i] * 1e9f);
    o[5] = convert_char_sat(x[i]);
    o[6] = convert_short_sat_rtp(x[i] * 100.0f);
    o[7] = convert_uchar_sat(x[i]);
}

kernel void math(global const float *x, global float *out, global int *ints) {
    size_t i = get_global_id(0);
    global float *o = out + 16 * i;
    float part, cosine;
    int exponent, quotient;
    o[0] = modf(x[i], &part);
    o[1] = part;
    o[2] = fract(x[i], &part);
    o[3] = part;
    o[4] = frexp(x[i], &exponent);
    ints[2 * i] = exponent;
    o[5] = ldexp(x[i], 3);
    o[6] = sqrt(fabs(x[i]));
    o[7] = floor(x[i]) + ceil(x[i]) * 2 + trunc(x[i]) * 4 + rint(x[i]) * 8 + round(x[i]) * 16;
    o[8] = fma(x[i], 3.0f, 1.0f);
    o[9] = sincos(x[i], &cosine);
    o[10] = cosine;
    o[11] = remquo(x[i], 3.0f, &quotient);
    ints[2 * i + 1] = quotient & 7;
    o[12] = exp(x[i] * 0.1f);
    o[13] = pow(fabs(x[i]), 1.5f);
    o[14] = atan2(x[i], 2.0f);
    o[15] = fmod(x[i], 1.25f);
}
