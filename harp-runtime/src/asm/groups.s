/* The walk over work-groups. All lanes; %r3: descriptor, %fp: lane control block, %item: the lane's
   number among all that were started. A core has places for D_CORE_GROUPS groups at a time, each of
   D_GROUP_WARPS warps that lie together. Place p of all runs the groups p, p + D_STRIDE and so on. */
groups:
        ld %r1, %r3, D_GROUP_WARPS
        ld %r0, %fp, L_WARP
        div %r2, %r0, %r1               /* %r2: the place in the core */
        mod %r0, %r0, %r1               /* %r0: the warp's number in the group */
        ld %r1, %fp, L_LANES
        mul %r1, %r1, %r0
        ld %ra, %fp, L_LANE
        add %r1, %r1, %ra
        st %r1, %fp, L_LOCAL_INDEX
        ld %item, %r3, D_CORE_GROUPS
        ld %ra, %fp, L_CORE
        mul %item, %item, %ra
        add %item, %item, %r2           /* %item: the group's number, at first the place */

/* Below the memory of the place's groups lie the control blocks of its warps. */
        ld %r1, %r3, D_GROUP_BYTES
        mul %r1, %r1, %item
        ld %ra, %r3, D_GROUP_SPACE
        add %r1, %r1, %ra
        addi %r0, %r0, #1
        muli %r0, %r0, G_BYTES
        sub %r0, %r1, %r0               /* %r0: the warp's control block */
        st %r0, %fp, L_GROUP
        st %r1, %r0, G_MEMORY
        shli %r2, %r2, #1
        st %r2, %r0, G_BARRIER

/* What does not change along a line. */
        ldi %r1, #0
        st %r1, %r0, G_ID_Y
        st %r1, %r0, G_ID_Z
        st %r1, %fp, L_LOCAL_Y
        st %r1, %fp, L_LOCAL_Z
        ldi %r1, #1
        st %r1, %r0, G_SIZE_Y
        st %r1, %r0, G_SIZE_Z

/* %r2: the group's number, %r3: the work-item's number in it, both without the dimensions done. */
group_next:
        ori %r2, %item, #0
        ld %r3, %fp, L_LOCAL_INDEX
DIMENSION_X
        ldi %r0, descriptor
        ld %r0, %r0, D_SPATIAL
        iszero @p0, %r0
  @p0 ? jmpi group_call
DIMENSION_Y
DIMENSION_Z

/* Work-items with a number beyond the group's extents are none: what is left of %r3 is not 0. The one
   split of the runtime library holds these lanes back from the kernel. */
group_call:
        ld %r0, %fp, L_GROUP
        ld %r1, %r0, G_SIZE_X
        ld %r2, %r0, G_SIZE_Y
        mul %r1, %r1, %r2
        ld %r2, %r0, G_SIZE_Z
        mul %r1, %r1, %r2
        ld %r2, %fp, L_LANES
        add %r1, %r1, %r2
        subi %r1, %r1, #1
        div %r1, %r1, %r2
        st %r1, %r0, G_BARRIER_WARPS
        iszero @p0, %r3
        notp @p1, @p0
        ldi %r0, runtime.arguments
        ld %r1, %sp, #0
hold_back:
  @p0 ? split
  @p1 ? jmpi group_end
        jali %ra, runtime.kernel
group_end:
        join

/* All warps of the place wait, those without work-items in this group, too: none is to be in the next
   group while another uses the memory of this one. The number of this barrier is not the kernel's. */
        ldi %r3, descriptor
        ld %r0, %fp, L_GROUP
        ld %r0, %r0, G_BARRIER
        addi %r0, %r0, #1
        ld %r1, %r3, D_GROUP_WARPS
        bar %r0, %r1
        ld %r0, %r3, D_STRIDE
        add %item, %item, %r0
        ld %r0, %r3, D_ITEMS
        sub %r0, %item, %r0
        isneg @p0, %r0
  @p0 ? jmpi group_next
