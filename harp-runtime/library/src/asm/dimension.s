/* One dimension of a group's position in the grid, and of a work-item's position in the group and grid. */
        ldi %r0, runtime.arguments
        ld %r1, %r0, A_COUNT_DIM
        mod %ra, %r2, %r1
        div %r2, %r2, %r1
        ld %r1, %fp, L_GROUP
        st %ra, %r1, G_ID_DIM
        ld %r1, %r0, A_GROUP_DIM
        mul %ra, %ra, %r1
        st %ra, POSITION_DIM            /* for now that of the group's first work-item */
        ld %r0, %r0, A_EXTENT_DIM
        sub %r0, %r0, %ra
        sub %ra, %r0, %r1
        isneg @p0, %ra
  @p0 ? ori %r1, %r0, #0                /* %r1: the group's extent */
        ld %r0, %fp, L_GROUP
        st %r1, %r0, G_SIZE_DIM
        mod %ra, %r3, %r1
        div %r3, %r3, %r1
        st %ra, %fp, L_LOCAL_DIM
        ld %r1, POSITION_DIM
        add %ra, %ra, %r1
        st %ra, POSITION_DIM
