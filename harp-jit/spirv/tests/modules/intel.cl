// options: -cl-std=CL2.0 -Dcl_intel_subgroups -Dcl_intel_subgroups_short -cl-no-stdinc -include opencl-c.h
// Intel's operations of subgroups.

// Rows of as many elements as the subgroup has work-items: what others have, then blocks that are read and written.
kernel void neighbours(global uint *o, global const uint *in) {
    uint own = get_sub_group_local_id(), lanes = get_max_sub_group_size();
    uint x = in[own];
    o[own] = intel_sub_group_shuffle(x, (own + 3) % lanes);
    o[lanes + own] = intel_sub_group_shuffle_xor(x, 1);
    o[2 * lanes + own] = intel_sub_group_shuffle_down(x, x + 1000, 3);
    o[3 * lanes + own] = intel_sub_group_shuffle_up(x + 1000, x, 3);
    float2 pair = intel_sub_group_shuffle((float2)(x, -1.0f * x), lanes - 1);
    o[4 * lanes + own] = pair.x - pair.y;
    uint2 block = intel_sub_group_block_read2(in);
    intel_sub_group_block_write2(o + 5 * lanes, block.yx);
    ushort4 narrow = intel_sub_group_block_read_us4((global ushort *)in);
    intel_sub_group_block_write_us4((global ushort *)(o + 7 * lanes), narrow.s1032);
}
