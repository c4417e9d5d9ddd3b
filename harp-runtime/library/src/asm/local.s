/* One dimension of a work-item's position in its group. */
        ld %r1, %group, G_SIZE_DIM
        mod %r0, %r3, %r1
        div %r3, %r3, %r1
        st %r0, %fp, L_LOCAL_DIM
        mul %r2, %r2, %r1
