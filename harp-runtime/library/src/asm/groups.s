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
        sub %group, %r1, %r0            /* %group: the warp's control block */
        st %group, %fp, L_GROUP
        st %r1, %group, G_MEMORY
        shli %r2, %r2, #1
        st %r2, %group, G_BARRIER

/* No group has these extents. If the grid has one dimension the others stay as they are. */
        ldi %r1, #0
        st %r1, %group, G_SIZE_X
        st %r1, %group, G_ID_Y
        st %r1, %group, G_ID_Z
        ldi %r1, #1
        st %r1, %group, G_SIZE_Y
        st %r1, %group, G_SIZE_Z

/* %r2: the group's number, divided by the counts of the dimensions that are done; %r3: other than 0 if
   the group has other extents than the one before. */
group_next:
        ori %r2, %item, #0
        ldi %r3, #0
GROUP_X
        ldi %r0, descriptor
        ld %r0, %r0, D_SPATIAL
        iszero @p0, %r0
  @p0 ? jmpi group_extents
GROUP_Y
GROUP_Z
group_extents:
        iszero @p0, %r3
  @p0 ? jmpi group_position

/* What depends on the extents. %r3: the work-item's number in the group, divided by the extents of the
   dimensions that are done, %r2: their product. */
        ld %r3, %fp, L_LOCAL_INDEX
        ldi %r2, #1
LOCAL_X
LOCAL_Y
LOCAL_Z
        ld %r1, %fp, L_LANES
        add %r2, %r2, %r1
        subi %r2, %r2, #1
        div %r2, %r2, %r1
        st %r2, %group, G_BARRIER_WARPS

/* If the rest is not 0 the number is beyond the extents, and the lane has no work-item. Its position is -1. */
        iszero @p0, %r3
        notp @p0, @p0
        ldi %r0, #0
        subi %r0, %r0, #1
  @p0 ? st %r0, %fp, L_LOCAL_X
KEEP_LOCAL

/* The only split of the runtime library holds lanes without a work-item back from the kernel. */
group_position:
FIND_LOCAL
        isneg @p1, %local
        ldi %r0, runtime.arguments
        ld %r2, %r0, A_GROUP_X
        ld %r3, %group, G_ID_X
        mul %r3, %r3, %r2
        add %r1, %local, %r3
        ldi %r2, descriptor
        ld %r2, %r2, D_SPATIAL
        iszero @p0, %r2
  @p0 ? jmpi group_call
POSITION_Y
POSITION_Z
group_call:
        notp @p0, @p1
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
FIND_GROUP
        ld %r0, %group, G_BARRIER
        addi %r0, %r0, #1
        ld %r1, %r3, D_GROUP_WARPS
        bar %r0, %r1
        ld %r0, %r3, D_STRIDE
        add %item, %item, %r0
        ld %r0, %r3, D_ITEMS
        sub %r0, %item, %r0
        isneg @p0, %r0
  @p0 ? jmpi group_next
