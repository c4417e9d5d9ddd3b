/* Starts the other lanes of a warp on machines with the extension: a lane finds out what it needs to know, which takes
   fewer instructions than a clone. Leaves the same as clones: all lanes active, with the lane's number in %fp. */
start_lanes:
        jalis %ra, %r2, lane_start

/* All lanes from here on. The number of a lane's first work-item is also that of its stack. */
lane_start:
        csr %fp, #0                     /* lane */
        csr %r1, #1                     /* warp */
        csr %r0, #2                     /* core */
        csr %r2, #3                     /* lanes of the machine */
        ldi %r3, descriptor
        ld %item, %r3, D_WARPS
        mul %item, %item, %r0
        add %item, %item, %r1
        mul %item, %item, %r2
