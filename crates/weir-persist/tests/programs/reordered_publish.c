/* A node is linked before it has its value. */
#include "pool.h"

struct node {
    long value, next;
};

int main(int count, char **words)
{
    char *pool = map(words[1]);
    volatile long *head = (long *)pool;
    volatile struct node *node = (struct node *)(pool + 64);

    weir_require("value 0=4000000000000000 -> 64=0700000000000000");
#ifdef MENDED
    node->value = 7;
    flush(node);
    fence();
    *head = 64;
#else
    *head = 64;      /* link */
    node->value = 7; /* value */
    flush(node);
#endif
    flush(head);
    fence();
}
