/* The walk over work-groups. All lanes; %r3: descriptor, %fp: lane control block, %item: the lane's
   number among all that were started. A core has places for D_CORE_GROUPS groups at a time, each of
   D_GROUP_WARPS consecutive warps. Of all places, place p runs the groups p, p + D_STRIDE and so on. */
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
        add %item, %item, %r2           /* %item: the group's number, at first that of the place */

/* The control blocks of a place's warps lie below the memory of its groups. */
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

/* Values that are the same for all groups of a grid with one dimension. */
        ldi %r1, #0
        st %r1, %r0, G_ID_Y
        st %r1, %r0, G_ID_Z
        st %r1, %fp, L_LOCAL_Y
        st %r1, %fp, L_LOCAL_Z
        ldi %r1, #1
        st %r1, %r0, G_SIZE_Y
        st %r1, %r0, G_SIZE_Z

/* %r2: the group's number, %r3: the work-item's number in it, both divided by the extents of the
   dimensions that are done. */
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

/* If the rest in %r3 is not 0 the number is beyond the group's extents, and the lane has no work-item. The
   only split of the runtime library holds these lanes back from the kernel. */
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
held_back:
  @p1 ? jmpi group_end
        jali %ra, runtime.kernel
group_end:
        join

/* All warps of the place wait, also those without work-items in this group: no warp may enter the next
   group while another one uses the memory of this one. This barrier's number differs from the kernel's. */
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
