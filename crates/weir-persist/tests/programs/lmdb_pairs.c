/* LMDB with MDB_WRITEMAP: transactions that each put one number under two keys.
 *
 * cc -I../../include lmdb_pairs.c -llmdb
 * lmdb_pairs write POOL TRANSACTIONS; lmdb_pairs recover POOL, which is a command of `weir persist check --check`. */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir_persist.h"

enum { BYTES = 128 << 10 };

static void must(int result, const char *what)
{
    if (result) {
        printf("%s: %s\n", what, mdb_strerror(result));
        exit(1);
    }
}

static MDB_env *opened(const char *name, unsigned more)
{
    MDB_env *env;

    must(mdb_env_create(&env), "create");
    must(mdb_env_set_mapsize(env, BYTES), "size");
    must(mdb_env_open(env, name, MDB_NOSUBDIR | MDB_NOLOCK | more, 0600), "open");
    return env;
}

static long get(MDB_txn *txn, MDB_dbi db, const char *key)
{
    MDB_val name = {strlen(key), (void *)key}, value;
    int result = mdb_get(txn, db, &name, &value);
    long number;

    if (result == MDB_NOTFOUND)
        return 0;
    must(result, key);
    memcpy(&number, value.mv_data, sizeof number);
    return number;
}

int main(int count, char **words)
{
    MDB_txn *txn;
    MDB_dbi db;
    char text[64];

    if (count > 3 && !strcmp(words[1], "write")) {
        MDB_env *env = opened(words[2], MDB_WRITEMAP);
        for (long n = 1; n <= atol(words[3]); n++) {
            MDB_val value = {sizeof n, &n};
            must(mdb_txn_begin(env, 0, 0, &txn), "begin");
            must(mdb_dbi_open(txn, 0, 0, &db), "table");
            must(mdb_put(txn, db, &(MDB_val){3, "one"}, &value, 0), "put");
            must(mdb_put(txn, db, &(MDB_val){3, "two"}, &value, 0), "put");
            must(mdb_txn_commit(txn), "commit");
            sprintf(text, "committed %ld", n);
            weir_mark(text);
        }
        mdb_env_close(env);
        return 0;
    }
    long committed = 0;
    const char *mark = getenv("WEIR_MARK");
    if (mark)
        sscanf(mark, "committed %ld", &committed);
    must(mdb_txn_begin(opened(words[2], MDB_RDONLY), 0, MDB_RDONLY, &txn), "begin");
    must(mdb_dbi_open(txn, 0, 0, &db), "table");
    long one = get(txn, db, "one"), two = get(txn, db, "two");
    if (one != two || (mark && (one < committed || one > committed + 1))) {
        printf("one is %ld and two is %ld after %ld commits\n", one, two, committed);
        return 1;
    }
    return 0;
}
