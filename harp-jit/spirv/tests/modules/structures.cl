// Structures and arrays: their layout, by value and by address, in all kinds of memory.

typedef struct { char tag; short id; int3 place; double weight; uchar bytes[3]; } item;
typedef struct __attribute__((packed)) { char tag; int value; short rest; } tight;
typedef struct { float x, y; int at[2]; } point;
typedef union { float f; uint u; uchar b[4]; } word;

kernel void layout(global item *items, global const int *x) {
    size_t i = get_global_id(0);
    items[i].tag = x[i];
    items[i].id = x[i] * 3;
    items[i].place = (int3)(x[i], x[i] + 1, x[i] + 2);
    items[i].weight = x[i] * 0.5;
    items[i].bytes[x[i] % 3] = 77;
}

kernel void packed(global tight *items, global const int *x) {
    size_t i = get_global_id(0);
    items[i].tag = 1;
    items[i].value = x[i] * 1000003;
    items[i].rest = x[i];
}

kernel void by_value(point p, global const int *x, global float *out, float2 q) {
    size_t i = get_global_id(0);
    point copy = p;
    copy.at[i & 1] += x[i];
    out[i] = copy.x * x[i] + copy.y + copy.at[0] * 100 + copy.at[1] * 10000 + q.x - q.y;
}

kernel void copies(global const point *in, global point *out, global word *words) {
    size_t i = get_global_id(0);
    point own[3];
    for (int k = 0; k < 3; k++) {
        own[k] = in[i];
        own[k].x += k;
        own[k].at[1] -= k;
    }
    out[i] = own[i % 3];
    word w;
    w.f = in[i].x;
    w.b[3] ^= 0x80;
    words[i] = w;
}

constant int table[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
constant point points[2] = {{1.5f, 2.5f, {3, 4}}, {-1.5f, -2.5f, {-3, -4}}};
constant char *constant names[3] = {"one", "two", "three"};
constant float3 vectors[2] = {(float3)(1, 2, 3), (float3)(4, 5, 6)};

kernel void constants(global const int *x, global int *out, constant short *more) {
    size_t i = get_global_id(0);
    int k = x[i];
    constant char *name = names[k % 3];
    int length = 0;
    while (name[length]) length++;
    out[i] = table[k % 4][k % 3] + (int)(points[k % 2].y * 10) + points[k & 1].at[1] * 1000
        + length * 100000 + more[k] + (int)vectors[k & 1].z * 10000000;
}

// The first address is right only if `by` is a multiple of 4, the second one always.
kernel void apart(global char *bytes, uint by, global uint *out) {
    size_t i = get_global_id(0);
    global tight *whole = (global tight *)(bytes + 4 * i);
    out[i] = *(global uint *)(bytes + 4 * i + by) + 2 * (uint)whole->value;
}

struct node {
    int value;
    global struct node *next;
};

// Nodes are linked from the last to the first, then added up from each one on.
kernel void linked(global struct node *nodes, global int *sums) {
    int i = get_global_id(0);
    nodes[i].next = i > 0 ? &nodes[i - 1] : 0;
    nodes[i].value = i * i;
    barrier(CLK_GLOBAL_MEM_FENCE);
    int sum = 0;
    for (global struct node *node = &nodes[i]; node; node = node->next)
        sum += node->value;
    sums[i] = sum;
}

struct leaf;

struct branch {
    struct leaf *leaves[2];
    int weight;
};

struct leaf {
    struct branch *owner;
    int weight;
};

// Structures that point to each other, in a work-item's own memory.
kernel void owned(global int *out) {
    int i = get_global_id(0);
    struct branch branch;
    struct leaf leaves[2];
    branch.weight = 10 * i;
    for (int n = 0; n < 2; n++) {
        leaves[n].weight = n + i;
        leaves[n].owner = &branch;
        branch.leaves[n ^ i & 1] = &leaves[n];
    }
    out[i] = 100 * branch.leaves[0]->weight + branch.leaves[1]->owner->weight;
}

struct sparse {
    char tag;
    double weight;
    int place[2];
    short count;
};

// What is between the members is copied as well, though nobody has written it.
kernel void sparse_copies(global double *out, int shift) {
    int i = get_global_id(0);
    struct sparse all[3];
    for (int n = 0; n < 3; n++) {
        all[n].tag = i + n;
        all[n].weight = 0.5 * n;
        all[n].place[0] = i;
        all[n].place[1] = n;
        all[n].count = -i;
    }
    struct sparse one = all[(i + shift) % 3];
    all[shift % 3] = one;
    struct sparse *other = &all[(i + 2 * shift) % 3];
    out[i] = other->tag + other->weight + 100 * other->place[0] + 1000 * other->place[1] + 10000 * one.count;
}

struct tallies { int step; volatile short of[9]; };

// Clang keeps the numbers in a variable of the module that is private.
kernel void tallied(global int *out, global const int *in) {
    int i = get_global_id(0);
    struct tallies t = { i, { 1, -2, 3, -4, 5, -6, 7, -8, 9 } };
    for (int k = 0; k < 4; k++)
        t.of[in[i] + k & 7] += t.step;
    int sum = 0;
    for (int k = 0; k < 9; k++)
        sum = sum * 3 + t.of[k];
    out[i] = sum;
}

struct filled { int step; uint of[31]; };
constant uchar odd[3] = { 1, 2, 3 };

// Clang fills the array with bytes, which are a variable of the module.
kernel void fills(global uint *out, global const int *in) {
    int i = get_global_id(0);
    uint all = 4294967295u;
    struct filled f = { i, { all, all, all, all, all, all, all, all, all, all, all, all, all, all, all, all, all, all, all, all,
                             all, all, all, all, all, all, all, all, all, all, all } };
    f.of[in[i] & 31] += f.step + odd[i % 3];
    uint sum = 0;
    for (int k = 0; k < 31; k++)
        sum = sum * 3 + f.of[k];
    out[i] = sum;
}

struct account { int total; int of[4]; };

// What it changes is its own, though LLVM's code gives it the caller's address.
__attribute__((noinline)) int spend(struct account a, int n) {
    a.total -= n;
    a.of[n & 3] -= n;
    return a.total * 10 + a.of[n & 3];
}

kernel void spending(global int *out, global const int *in) {
    int i = get_global_id(0);
    struct account own = { i * 100, { i, i + 1, i + 2, i + 3 } };
    int left = spend(own, in[i]);
    for (int k = 0; k < 3; k++)
        left += spend(own, k);
    out[i] = left * 100 + own.total + own.of[in[i] & 3];
}

struct nothing { };

kernel void nothings(global int *out) {
    struct nothing one, other = one;
    out[get_global_id(0)] = sizeof(other) + 1;
}

struct wide { uchar first; int4 second; };

// Compilers know too much about addresses.
uint beyond(uintptr_t address, uint size) {
    volatile uintptr_t seen = address;
    return seen % size;
}

#define BEYOND(POINTER, TYPE) beyond((uintptr_t)(POINTER), sizeof(TYPE))

__attribute__((noinline)) uint in_function(uint n) {
    volatile uchar before = n;
    volatile long16 own = n;
    return BEYOND(&own, long16) + own.s3 - before;
}

// How far memory lies behind where its type may lie: nowhere. So programs may use the last bits of addresses.
kernel void alignments(global uint *o, global uchar *few, global long16 *many, local uchar *local_few, local double16 *local_many,
                       struct wide wide) {
    local uchar shared_few;
    local short8 shared;
    volatile uchar before = 1;
    volatile int8 own = 2;
    int i = get_global_id(0);
    if (i == 0) {
        shared_few = local_few[0] = few[0];
        shared = (short8)(before);
        local_many[0] = own.s1;
    }
    global uint *all = o + 9 * i;
    all[0] = BEYOND(o, long16) + BEYOND(few, long16);
    all[1] = BEYOND(many, long16);
    all[2] = BEYOND(local_many, double16);
    all[3] = BEYOND(&shared, short8);
    all[4] = BEYOND(&own, int8);
    all[5] = in_function(few[0]);
    all[6] = BEYOND(&wide, int4);
    all[7] = BEYOND(&wide.second, int4);
    all[8] = wide.second.z + wide.first;
}
