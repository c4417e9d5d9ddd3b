// AES (FIPS 197): decrypts blocks of 16 bytes. The table of substitutes is computed by each group.

uchar product(uchar a, uchar b) {
    uchar sum = 0;
    while (b != 0) {
        if (b & 1)
            sum ^= a;
        a = a << 1 ^ (a & 0x80 ? 0x1b : 0);
        b >>= 1;
    }
    return sum;
}

// The 254th power: the inverse in the field, and 0 of 0.
uchar inverse(uchar a) {
    uchar result = 1;
    for (int bits = 254; bits > 0; bits >>= 1) {
        if (bits & 1)
            result = product(result, a);
        a = product(a, a);
    }
    return result;
}

uchar substitute(uchar a) {
    uchar b = inverse(a);
    return b ^ rotate(b, (uchar)1) ^ rotate(b, (uchar)2) ^ rotate(b, (uchar)3) ^ rotate(b, (uchar)4) ^ 0x63;
}

uchar unmixed(uchar a, uchar b, uchar c, uchar d) {
    return product(a, 14) ^ product(b, 11) ^ product(c, 13) ^ product(d, 9);
}

kernel void decrypt(global const uchar4 *cipher, global uchar4 *plain, constant uchar4 *keys, int rounds, local uchar4 *columns) {
    local uchar originals[256];
    size_t i = get_global_id(0), l = get_local_id(0), first = l & ~(size_t)3;
    uint c = l & 3;
    for (uint a = l; a < 256; a += get_local_size(0))
        originals[substitute(a)] = a;
    uchar4 own = cipher[i] ^ keys[4 * rounds + c];
    for (int round = rounds - 1; round >= 0; --round) {
        columns[l] = own;
        barrier(CLK_LOCAL_MEM_FENCE);
        own.x = originals[columns[l].x];
        own.y = originals[columns[first + (c + 3 & 3)].y];
        own.z = originals[columns[first + (c + 2 & 3)].z];
        own.w = originals[columns[first + (c + 1 & 3)].w];
        barrier(CLK_LOCAL_MEM_FENCE);
        own ^= keys[4 * round + c];
        if (round > 0) {
            uchar4 a = own;
            own.x = unmixed(a.x, a.y, a.z, a.w);
            own.y = unmixed(a.y, a.z, a.w, a.x);
            own.z = unmixed(a.z, a.w, a.x, a.y);
            own.w = unmixed(a.w, a.x, a.y, a.z);
        }
    }
    plain[i] = own;
}
