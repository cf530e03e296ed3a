/* A program that writes its trace itself. */
#include "weir_persist.h"

static unsigned char pool[256] __attribute__((aligned(64)));

int main(void)
{
    unsigned char data = 0x2a, flag = 1;

    weir_pool(pool, sizeof pool);
    weir_require("data 0=01 -> 64=2a");
    weir_store(pool + 64, &data, 1);
#ifdef MENDED
    weir_flush(pool + 64, 1);
    weir_fence();
#endif
    weir_store(pool, &flag, 1);
    weir_flush(pool, 1);
    weir_fence();
    weir_mark("published");
}
