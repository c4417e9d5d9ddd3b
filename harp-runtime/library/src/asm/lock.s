/* The lock takes loads and stores alone, if these are sequentially consistent, and a few of them if no other warp wants
   it. It is Lamport's, "A fast mutual exclusion algorithm" (ACM Transactions on Computer Systems 5, 1987), algorithm 2,
   which lets some warp in. Around it is Bar-David's construction (in Raynal, "Concurrent Programming", 2013, chapter 2),
   which lets every warp in: in the order in which warps take turns, a warp could find the lock taken each time.

   The words are x, y and turn, then b[i] and wants[i] for each warp of all cores. Warps are numbered from 1, in turn
   from 0, as all words are 0 at first. All lanes that execute this have the same numbers, and find the same in memory,
   so no branch diverges. */

/* %r0: core, %r1: warp. */
.perm x
.global
runtime.lock:
        ldi %r2, runtime.lock_place
        ld %r3, %r2, K_WARPS
        ld %r2, %r2, K_WORDS            /* %r2: the words */
        mul %r0, %r0, %r3
        add %r0, %r0, %r1
        addi %r0, %r0, #1               /* %r0: the warp's number i among all */
        shli %r1, %r0, (`__WORD + 1)
        add %r1, %r1, %r2               /* %r1: b[i] is behind it, then wants[i] */
        ldi %r3, #1
        st %r3, %r1, (__WORD*2)         /* wants[i] := true */
runtime.lock_turn:                      /* await turn = i or not wants[turn] */
        ld %r3, %r2, (__WORD*2)
        addi %r3, %r3, #1
        sub %r3, %r3, %r0
        iszero @p0, %r3
  @p0 ? jmpi runtime.lock_again
        ld %r3, %r2, (__WORD*2)
        shli %r3, %r3, (`__WORD + 1)
        add %r3, %r3, %r2
        ld %r3, %r3, (__WORD*4)
        rtop @p0, %r3
  @p0 ? jmpi runtime.lock_turn
runtime.lock_again:
        ldi %r3, #1
        st %r3, %r1, __WORD             /* b[i] := true */
        st %r0, %r2, #0                 /* x := i */
        ld %r3, %r2, __WORD
        rtop @p0, %r3
  @p0 ? jmpi runtime.lock_give_way      /* y <> 0 */
        st %r0, %r2, __WORD             /* y := i */
        ld %r3, %r2, #0
        sub %r3, %r3, %r0
        iszero @p0, %r3
  @p0 ? jmpr %ra                        /* x = i */
        ldi %r3, #0
        st %r3, %r1, __WORD             /* b[i] := false */
        ldi %r1, runtime.lock_place
        ld %r1, %r1, K_COUNT
runtime.lock_others:                    /* await not b[j], for all j */
        shli %r3, %r1, (`__WORD + 1)
        add %r3, %r3, %r2
        ld %r3, %r3, __WORD
        rtop @p0, %r3
  @p0 ? jmpi runtime.lock_others
        subi %r1, %r1, #1
        rtop @p0, %r1
  @p0 ? jmpi runtime.lock_others
        shli %r1, %r0, (`__WORD + 1)
        add %r1, %r1, %r2
        ld %r3, %r2, __WORD
        sub %r3, %r3, %r0
        iszero @p0, %r3
  @p0 ? jmpr %ra                        /* y = i */
        jmpi runtime.lock_await
runtime.lock_give_way:
        ldi %r3, #0
        st %r3, %r1, __WORD             /* b[i] := false */
runtime.lock_await:                     /* await y = 0 */
        ld %r3, %r2, __WORD
        rtop @p0, %r3
  @p0 ? jmpi runtime.lock_await
        jmpi runtime.lock_again

/* %r0: core, %r1: warp. */
.global
runtime.unlock:
        ldi %r2, runtime.lock_place
        ld %r3, %r2, K_WARPS
        mul %r0, %r0, %r3
        add %r0, %r0, %r1
        ld %r1, %r2, K_COUNT
        ld %r2, %r2, K_WORDS
        shli %r0, %r0, (`__WORD + 1)
        add %r0, %r0, %r2
        ldi %r3, #0
        st %r3, %r0, (__WORD*4)         /* wants[i] := false */
        ld %r3, %r2, (__WORD*2)
        shli %r3, %r3, (`__WORD + 1)
        add %r3, %r3, %r2
        ld %r3, %r3, (__WORD*4)
        rtop @p0, %r3
  @p0 ? jmpi runtime.unlock_end         /* wants[turn] */
        ld %r3, %r2, (__WORD*2)
        addi %r3, %r3, #1
        sub %r1, %r3, %r1
        iszero @p0, %r1
  @p0 ? ldi %r3, #0
        st %r3, %r2, (__WORD*2)         /* turn := turn + 1 modulo the number of warps */
runtime.unlock_end:
        ldi %r3, #0
        st %r3, %r2, __WORD             /* y := 0 */
        st %r3, %r0, (__WORD*3)         /* b[i] := false */
        jmpr %ra

/* Filled in by the host before each launch. */
.perm r
runtime.lock_place:
        .space K_SIZE
