/* PMDK's libpmemobj: transactions that each put a node at the front of a list and count it.
 *
 * cc -I../../include pmemobj_list.c -lpmemobj -lpmem
 * pmemobj_list create POOL; pmemobj_list write POOL NODES; pmemobj_list recover POOL, which is a command of
 * `weir persist check --check`. With -DBUG the count is changed without the transaction's log. */
#include <libpmemobj.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir_persist.h"

POBJ_LAYOUT_BEGIN(list);
POBJ_LAYOUT_ROOT(list, struct root);
POBJ_LAYOUT_TOID(list, struct node);
POBJ_LAYOUT_END(list);

struct root {
    TOID(struct node) first;
    /* In another cache line. */
    char between[128];
    uint64_t nodes;
};

struct node {
    TOID(struct node) next;
    uint64_t number;
};

int main(int count, char **words)
{
    PMEMobjpool *pool = !strcmp(words[1], "create") ? pmemobj_create(words[2], "list", PMEMOBJ_MIN_POOL, 0600)
                                                    : pmemobj_open(words[2], "list");
    char text[64];

    if (!pool) {
        printf("%s: %s\n", words[2], pmemobj_errormsg());
        return 1;
    }
    TOID(struct root) root = POBJ_ROOT(pool, struct root);
    if (!strcmp(words[1], "write")) {
        for (long n = 1; n <= atol(words[3]); n++) {
            TX_BEGIN(pool)
            {
                TOID(struct node) node = TX_NEW(struct node);
                D_RW(node)->number = n;
                D_RW(node)->next = D_RO(root)->first;
                TX_ADD_FIELD(root, first);
                D_RW(root)->first = node;
#ifndef BUG
                TX_ADD_FIELD(root, nodes);
#endif
                D_RW(root)->nodes = n;
            }
            TX_ONABORT
            {
                puts("a transaction failed");
                exit(1);
            }
            TX_END
            sprintf(text, "committed %ld", n);
            weir_mark(text);
        }
    }
    if (!strcmp(words[1], "recover")) {
        unsigned long committed = 0, nodes = 0;
        const char *mark = getenv("WEIR_MARK");
        if (mark)
            sscanf(mark, "committed %lu", &committed);
        for (TOID(struct node) node = D_RO(root)->first; !TOID_IS_NULL(node); node = D_RO(node)->next)
            if (D_RO(node)->number != D_RO(root)->nodes - nodes++)
                break;
        if (nodes != D_RO(root)->nodes || (mark && (nodes < committed || nodes > committed + 1))) {
            printf("%lu nodes, counted as %lu, after %lu commits\n", nodes, D_RO(root)->nodes, committed);
            return 1;
        }
    }
    pmemobj_close(pool);
    return 0;
}
