// Control flow: loops of all kinds, switches, calls, early returns, jumps.

int collatz(int n) {
    int steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

kernel void loops(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    int n = x[i], sum = 0;
    for (int k = 0; k < n; k++) {
        if (k % 7 == 3) continue;
        if (sum > 1000) break;
        sum += k * k;
        for (int j = k; j > 0; j /= 2) {
            if ((j ^ n) & 4) sum += j;
            else sum -= 1;
        }
    }
    do {
        sum ^= n;
        n -= 3;
    } while (n > 0);
    out[i] = sum + collatz(x[i] + 1);
}

int classify(int n) {
    switch (n) {
    case 0: return 100;
    case 1:
    case 2: n += 5;
    case 3: n *= 2; break;
    case -4: return -1;
    case 1000: n = 6; break;
    default: if (n < 0) return n - 1; n = 9;
    }
    return n;
}

kernel void switches(global const int *x, global const long *y, global const char *z, global int *out) {
    size_t i = get_global_id(0);
    int sum = classify(x[i]);
    switch (y[i]) {
    case 0x100000000: sum += 1000; break;
    case -1: sum += 2000; break;
    case 5: sum += 3000; break;
    }
    switch (z[i]) {
    case -100: sum += 10000; break;
    case 100: sum += 20000; break;
    default: sum += 30000;
    }
    out[i] = sum;
}

kernel void early(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    out[i] = 1;
    if (x[i] < 0) return;
    out[i] = 2;
    for (int k = 0; k < x[i]; k++)
        if (k * k == x[i]) {
            out[i] = k + 10;
            return;
        }
    out[i] = 3;
}

// A loop with two entries.
kernel void jumps(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    int n = x[i], sum = 0;
    if (n & 1) goto middle;
top:
    sum += n;
    n--;
middle:
    sum = sum * 3 + 1;
    if (n > 0) {
        n -= 2;
        goto top;
    }
    out[i] = sum;
}

int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

kernel void recursion(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    out[i] = fibonacci(x[i]);
}

int even(int n);
int odd(int n) { return n == 0 ? 0 : even(n - 1); }
int even(int n) { return n == 0 ? 1 : odd(n - 1); }

struct pair { long sum; int count; float mean; };

struct pair summary(global const int *x, int n, int depth) {
    if (depth > 0) return summary(x, n - 1, depth - 1);
    struct pair result = {0, n, 0.0f};
    for (int k = 0; k < n; k++) result.sum += x[k];
    result.mean = n ? (float)result.sum / n : 0;
    return result;
}

kernel void mutual(global const int *x, global long *out) {
    size_t i = get_global_id(0);
    struct pair p = summary(x, i + 4, 3);
    out[2 * i] = even(x[i]) ? p.sum : -p.sum;
    out[2 * i + 1] = p.count * 1000 + (int)(p.mean * 8);
}

void swap(int *a, int *b) {
    int t = *a;
    *a = *b;
    *b = t;
}

// Memory of a work-item's own, by indices that are not known.
kernel void sorting(global const int *x, global int *out) {
    size_t i = get_global_id(0);
    int own[8];
    for (int k = 0; k < 8; k++) own[k] = x[8 * i + k];
    for (int k = 0; k < 8; k++)
        for (int j = k + 1; j < 8; j++)
            if (own[j] < own[k]) swap(&own[j], &own[k]);
    for (int k = 0; k < 8; k++) out[8 * i + k] = own[k];
}

int climb(global const int *x, int n) {
    int here = x[get_global_id(0)] + (int)get_local_id(0) * 1000;
    return n == 0 ? here : 3 * climb(x, n - 1) - here;
}

kernel void climbing(global const int *x, global int *out) {
    out[get_global_id(0)] = climb(x, get_global_id(0) % 5);
}
