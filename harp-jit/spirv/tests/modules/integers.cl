// options: -D__opencl_c_integer_dot_product_input_4x8bit -D__opencl_c_integer_dot_product_input_4x8bit_packed
// Operations on integers of all widths: each work-item stores the results of its operands.

#define INTEGERS(T, U, S) \
    kernel void ops_##T(global const T *x, global const T *y, global T *out) { \
        size_t i = get_global_id(0); \
        T a = x[i], b = y[i]; \
        global T *o = out + i * 24; \
        o[0] = a + b; \
        o[1] = a - b; \
        o[2] = a * b; \
        o[3] = b == 0 ? 0 : a / (b == (T)-1 ? (T)1 : b); \
        o[4] = (b | 1) == (T)-1 ? 0 : a % (T)(b | 1); \
        o[5] = a & b; \
        o[6] = a | b; \
        o[7] = a ^ b; \
        o[8] = ~a; \
        o[9] = -a; \
        o[10] = a << (b & 7); \
        o[11] = a >> (b & 7); \
        o[12] = a < b; \
        o[13] = a <= b; \
        o[14] = a == b; \
        o[15] = a > b ? a : b; \
        o[16] = (T)(U)a; \
        o[17] = (T)(S)b; \
        o[18] = (T)(char)a; \
        o[19] = (T)(ushort)b; \
        o[20] = (T)(float)(short)a; \
        o[21] = !a; \
        o[22] = a && b; \
        o[23] = a || b; \
    }

INTEGERS(char, uchar, char)
INTEGERS(uchar, uchar, char)
INTEGERS(short, ushort, short)
INTEGERS(ushort, ushort, short)
INTEGERS(int, uint, int)
INTEGERS(uint, uint, int)
INTEGERS(long, ulong, long)
INTEGERS(ulong, ulong, long)

#define BUILTINS(T, U) \
    kernel void builtins_##T(global const T *x, global const T *y, global const T *z, global T *out) { \
        size_t i = get_global_id(0); \
        T a = x[i], b = y[i], c = z[i]; \
        T lo = min(a, b), hi = max(a, b); \
        global T *o = out + i * 20; \
        o[0] = (T)abs(a); \
        o[1] = (T)abs_diff(a, b); \
        o[2] = add_sat(a, b); \
        o[3] = sub_sat(a, b); \
        o[4] = hadd(a, b); \
        o[5] = rhadd(a, b); \
        o[6] = clamp(c, lo, hi); \
        o[7] = clz(a); \
        o[8] = mad_hi(a, b, c); \
        o[9] = mad_sat(a, b, c); \
        o[10] = lo; \
        o[11] = hi; \
        o[12] = mul_hi(a, b); \
        o[13] = rotate(a, b); \
        o[14] = popcount(a); \
        o[15] = bitselect(a, b, c); \
        o[16] = select(a, b, (U)c); \
        o[17] = 0; \
        o[18] = 0; \
        o[19] = 0; \
    }

BUILTINS(char, uchar)
BUILTINS(uchar, uchar)
BUILTINS(short, ushort)
BUILTINS(ushort, ushort)
BUILTINS(int, uint)
BUILTINS(uint, uint)
BUILTINS(long, ulong)
BUILTINS(ulong, ulong)

kernel void mixed(global const int *x, global const int *y, global long *out) {
    size_t i = get_global_id(0);
    int a = x[i], b = y[i];
    global long *o = out + i * 8;
    o[0] = upsample(a, (uint)b);
    o[1] = upsample((uint)a, (uint)b);
    o[2] = upsample((short)a, (ushort)b);
    o[3] = mad24(a << 8 >> 8, b << 8 >> 8, 5);
    o[4] = mul24((uint)a & 0xffffff, (uint)b & 0xffffff);
    o[5] = convert_uchar_sat(a) + ((long)convert_char_sat(b) << 8);
    o[6] = convert_ushort_sat((long)a * b);
    o[7] = convert_uint_sat((long)a * b) + convert_int_sat((long)a * b);
}

// Division by zero and overflow must not trap; what comes out is open.
kernel void divisions(global const int *x, global const int *y, global int *out) {
    size_t i = get_global_id(0);
    out[4 * i] = x[i] / y[i];
    out[4 * i + 1] = x[i] % (y[i] + 1);
    out[4 * i + 2] = x[i] / -1;
    out[4 * i + 3] = x[i] % -1 + x[i] / -7;
}

// Products of vectors of four bytes, which lie in words or not (cl_khr_integer_dot_product).
kernel void dots(global const uint *x, global const uint *y, global int *out) {
    size_t i = get_global_id(0);
    uint a = x[i], b = y[i];
    global int *o = out + i * 12;
    o[0] = dot_4x8packed_uu_uint(a, b);
    o[1] = dot_4x8packed_ss_int(a, b);
    o[2] = dot_4x8packed_us_int(a, b);
    o[3] = dot_4x8packed_su_int(a, b);
    o[4] = dot_acc_sat_4x8packed_uu_uint(a, b, a);
    o[5] = dot_acc_sat_4x8packed_ss_int(a, b, a);
    o[6] = dot_acc_sat_4x8packed_us_int(a, b, a);
    o[7] = dot_acc_sat_4x8packed_su_int(a, b, a);
    o[8] = dot_acc_sat(as_uchar4(a), as_uchar4(b), a);
    o[9] = dot_acc_sat(as_char4(a), as_char4(b), (int)a);
    o[10] = dot_acc_sat(as_uchar4(a), as_char4(b), (int)a);
    o[11] = dot_acc_sat(as_char4(a), as_uchar4(b), (int)a);
}
