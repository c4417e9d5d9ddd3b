/* One dimension of a group's position among the groups of the grid, and its extent. */
        ldi %r0, runtime.arguments
        ld %r1, %r0, A_COUNT_DIM
        mod %r0, %r2, %r1
        div %r2, %r2, %r1
        st %r0, %group, G_ID_DIM
        ldi %r1, runtime.arguments
        ld %r1, %r1, A_GROUP_DIM
        mul %r0, %r0, %r1
        ldi %r1, runtime.arguments
        ld %r1, %r1, A_EXTENT_DIM
        sub %r0, %r1, %r0               /* %r0: what is left of the grid */
        ldi %r1, runtime.arguments
        ld %r1, %r1, A_GROUP_DIM
        sub %r1, %r0, %r1
        isneg @p0, %r1
        notp @p0, @p0
  @p0 ? sub %r0, %r0, %r1               /* %r0: the group's extent */
        ld %r1, %group, G_SIZE_DIM
        st %r0, %group, G_SIZE_DIM
        xor %r1, %r1, %r0
        or %r3, %r3, %r1
