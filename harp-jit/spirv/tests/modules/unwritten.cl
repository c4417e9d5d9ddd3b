// Variables that are read before they are written, and such as only seem to be.

struct pair { char c; int n; short s; };

struct pair make(int n) {
    struct pair p;
    p.c = 1;
    p.n = n;
    p.s = 3;
    return p;
}

kernel void clean(global float4 *wide, global struct pair *pairs) {
    int i = get_global_id(0);
    float4 v;
    v.x = 1;
    v.yz = (float2)(2, 3);
    float4 w = v;
    w.w = i + v.x;
    wide[i] = w;
    wide[i].y = 7;
    float3 t;
    t.x = 1;
    t.z = 3;
    float3 u = t;
    wide[i].x += u.z;
    struct pair p = make(i), q = p;
    pairs[i] = q;
    private int places[4];
    for (int k = 0; k < 3; k++) places[k] = k;
    pairs[i].n += places[i % 3];
}

kernel void number(global int *out, int count) {
    int i = get_global_id(0);
    int x;
    if (i < count) x = i;
    out[i] = x;
}

kernel void component(global float4 *out, int count) {
    int i = get_global_id(0);
    float4 v;
    v.xyz = 1;
    if (i < count) v.w = 2;
    out[i] = v;
}

kernel void element(global int *out, int count) {
    int i = get_global_id(0);
    private int places[4];
    for (int k = 0; k < 3; k++) places[k] = k;
    out[i] = places[i < count ? 0 : 3];
}

kernel void condition(global int *out, int count) {
    int i = get_global_id(0);
    bool is_odd;
    if (i < count) is_odd = i & 1;
    out[i] = 0;
    if (is_odd) out[i] = 1;
}
