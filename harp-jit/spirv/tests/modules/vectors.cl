// Vectors of all lengths: components, conversions, loads and stores, shuffles, comparisons.

#define LENGTH(N) \
    kernel void sum##N(global const float##N *x, global const float##N *y, global float##N *out, float##N scale) { \
        size_t i = get_global_id(0); \
        float##N v = x[i] * scale + y[i]; \
        out[i] = select(v, -v, x[i] < y[i]); \
    } \
    kernel void data##N(global const int *x, global int *out, int shift) { \
        size_t i = get_global_id(0); \
        int##N v = vload##N(i, x); \
        v = (v << shift) ^ (v >> 3); \
        vstore##N(v, i, out); \
    } \
    kernel void convert##N(global const float##N *x, global uchar##N *bytes, global int##N *near) { \
        size_t i = get_global_id(0); \
        bytes[i] = convert_uchar##N##_sat(x[i]); \
        near[i] = convert_int##N##_rte(x[i]); \
    }

LENGTH(2)
LENGTH(3)
LENGTH(4)
LENGTH(8)
LENGTH(16)

kernel void swizzle(global const int4 *x, global int4 *out) {
    size_t i = get_global_id(0);
    int4 v = x[i];
    int8 w = (int8)(v.wzyx, v.lo, v.odd);
    w.s3 = 7;
    out[3 * i] = w.s0246;
    out[3 * i + 1] = w.hi + (int4)(1, 2, 3, 4);
    out[3 * i + 2] = (int4)(w.s76, any(v > 3), all(v > 3));
}

kernel void indexed(global const int4 *x, global const int *at, global int *out) {
    size_t i = get_global_id(0);
    int4 v = x[i];
    int k = at[i] & 3;
    ((int *)&v)[k] += 100;
    out[i] = ((int *)&v)[(k + 1) & 3] + ((int *)&v)[k];
}

kernel void shuffled(global const ushort8 *x, global const ushort8 *mask, global ushort8 *out) {
    size_t i = get_global_id(0);
    ushort4 low = x[i].lo, high = x[i].hi;
    out[2 * i] = shuffle(x[i], mask[i]);
    out[2 * i + 1] = shuffle2(low, high, mask[i]);
}

kernel void recast(global const uint2 *x, global ushort4 *halves, global ulong *wide, global float2 *floats) {
    size_t i = get_global_id(0);
    halves[i] = as_ushort4(x[i]);
    wide[i] = as_ulong(x[i]);
    floats[i] = as_float2(x[i]);
}

kernel void geometry(global const float4 *x, global const float4 *y, global float *out) {
    size_t i = get_global_id(0);
    global float *o = out + 16 * i;
    float4 a = x[i], b = y[i];
    o[0] = dot(a, b);
    o[1] = length(a);
    o[2] = distance(a, b);
    o[3] = fast_length(a.xyz);
    vstore4(cross(a, b), 1, o);
    vstore4(normalize(b), 2, o);
    vstore3(cross(a.xyz, b.xyz), 4, o);
    o[15] = dot(a.xy, b.zw);
}
