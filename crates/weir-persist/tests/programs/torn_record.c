/* A record of two words is changed in place; the mended program writes another and switches to it. */
#include "pool.h"

int main(int count, char **words)
{
    char *pool = map(words[1]);
    volatile long *which = (long *)pool, *one = (long *)(pool + 64), *other = (long *)(pool + 128);

    one[0] = one[1] = 1;
    flush(one);
    fence();
#ifdef MENDED
    weir_require("old 0=00 -> 64=01000000000000000100000000000000");
    weir_require("new 0=01 -> 128=02000000000000000200000000000000");
    other[0] = other[1] = 2;
    flush(other);
    fence();
    *which = 1;
    flush(which);
#else
    (void)which, (void)other;
    weir_require("record 64=01000000000000000100000000000000|02000000000000000200000000000000");
    one[0] = 2; /* first half */
    one[1] = 2; /* second half */
    flush(one);
#endif
    fence();
}
