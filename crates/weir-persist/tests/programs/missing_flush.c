/* A flag is published, but its data is not flushed before. */
#include "pool.h"

int main(int count, char **words)
{
    volatile char *pool = map(words[1]);

    weir_require("data 0=01 -> 64=2a");
    pool[64] = 0x2a; /* data */
#ifdef MENDED
    flush(&pool[64]);
    fence();
#endif
    pool[0] = 1; /* flag */
    flush(&pool[0]);
    fence();
}
