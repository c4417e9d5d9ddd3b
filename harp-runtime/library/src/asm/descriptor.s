/* Filled in by the host before each launch. */
.perm r
descriptor:
        .space D_COUNT
