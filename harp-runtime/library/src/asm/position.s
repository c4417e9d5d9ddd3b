/* One dimension but the first of a work-item's position in the grid. */
        ld %r2, %r0, A_GROUP_DIM
        ld %r3, %group, G_ID_DIM
        mul %r3, %r3, %r2
        ld %r2, %fp, L_LOCAL_DIM
        add %r3, %r3, %r2
        st %r3, %fp, L_DIM
