// Searches in a tree with many keys a node: a group follows a query, a work-item looks at each key.

#define ORDER 8

typedef struct {
    int keys[ORDER + 1];
    int children[ORDER + 1];
    uchar is_leaf;
} Node;

int descend(global const Node *nodes, int height, int key, local int *offset) {
    int l = get_local_id(0);
    if (l == 0)
        *offset = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int level = 0; level < height; ++level) {
        global const Node *node = &nodes[*offset];
        bool here = node->keys[l] <= key && key < node->keys[l + 1];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (here)
            *offset = node->children[l];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    int found = *offset;
    barrier(CLK_LOCAL_MEM_FENCE);
    return found;
}

kernel void find(global const Node *nodes, global const int *records, global const int *queries, global int *answers, int height) {
    local int offset;
    int query = queries[get_group_id(0)], l = get_local_id(0);
    global const Node *leaf = &nodes[descend(nodes, height, query, &offset)];
    if (l == 0)
        answers[get_group_id(0)] = -1;
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (leaf->is_leaf && leaf->keys[l] == query)
        answers[get_group_id(0)] = records[leaf->children[l]];
}

// How many keys are between two, the last one included, if leaves follow each other.
kernel void count(global const Node *nodes, global const int2 *ranges, global int *counts, int height) {
    local int offset, total;
    int2 range = ranges[get_group_id(0)];
    int l = get_local_id(0);
    int first = descend(nodes, height, range.x, &offset), last = descend(nodes, height, range.y, &offset);
    if (l == 0)
        total = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int leaf = first; leaf <= last; ++leaf) {
        int key = nodes[leaf].keys[l];
        if (key >= range.x && key <= range.y && key != INT_MAX)
            atomic_inc(&total);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0)
        counts[get_group_id(0)] = total;
}
