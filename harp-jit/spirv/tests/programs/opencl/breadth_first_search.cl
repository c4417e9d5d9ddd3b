// Breadth-first search by levels: one kernel visits the frontier's neighbours, one makes the next frontier.

typedef struct {
    int first, edges;
} Node;

kernel void visit(global const Node *nodes, global const int *edges, global uchar *frontier, global uchar *updating,
                  global const uchar *visited, global int *costs, int count) {
    int n = get_global_id(0);
    if (n >= count || !frontier[n])
        return;
    frontier[n] = false;
    Node node = nodes[n];
    for (int e = node.first; e < node.first + node.edges; ++e) {
        int other = edges[e];
        if (!visited[other]) {
            costs[other] = costs[n] + 1;
            updating[other] = true;
        }
    }
}

kernel void update(global uchar *frontier, global uchar *updating, global uchar *visited, global int *more, int count) {
    int n = get_global_id(0);
    if (n < count && updating[n]) {
        frontier[n] = true;
        visited[n] = true;
        updating[n] = false;
        *more = true;
    }
}
