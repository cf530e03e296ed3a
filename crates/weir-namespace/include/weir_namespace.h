/* Named ranges of memory that processes and hosts share (docs/namespaces.md). Every function may be called by any thread.
 *
 * Functions that return an int return 0, or -1 on an error; those that return a pointer, null on an error; an offset of
 * an allocation is never 0. weir_namespace_error() says why, for the calling thread.
 *
 * Link with -lweir_namespace (`cargo build --release -p weir-namespace`: target/release/libweir_namespace.so and .a). */
#ifndef WEIR_NAMESPACE_H
#define WEIR_NAMESPACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_namespace_pool weir_namespace_pool;
typedef struct weir_namespace_handle weir_namespace_handle;

/* Makes a pool of so many bytes in a file or a DAX device, 0 for all of it; what it had is lost. host is the name of this
 * host, null for the kernel's. */
weir_namespace_pool *weir_namespace_make(const char *path, uint64_t bytes, const char *host);
/* Opens a pool, and recovers what dead processes left. A child of a fork opens it again. */
weir_namespace_pool *weir_namespace_open(const char *path, const char *host);
/* Its handles stay good. */
void weir_namespace_pool_close(weir_namespace_pool *pool);

/* A namespace of zeros. With keep == 0 it is released when this process has ended and no other has it open. */
int weir_namespace_create(const weir_namespace_pool *pool, const char *name, uint64_t bytes, uint32_t mode, int keep);
/* Grows it in place, or moves it if no process has it open; what it loses is scrubbed. */
int weir_namespace_resize(const weir_namespace_pool *pool, const char *name, uint64_t bytes);
/* Makes another host its owner; no process may have it open. */
int weir_namespace_hand_over(const weir_namespace_pool *pool, const char *name, const char *host);
/* Releases it: its range is zero before it is free. */
int weir_namespace_destroy(const weir_namespace_pool *pool, const char *name);

/* Maps a namespace, shared, and counts a reference until it is closed or this process dies. */
weir_namespace_handle *weir_namespace_map(const weir_namespace_pool *pool, const char *name, int write);
int weir_namespace_close(weir_namespace_handle *handle);
/* Its first byte. Loads and stores there are not checked. */
void *weir_namespace_memory(const weir_namespace_handle *handle, uint64_t *bytes);
/* Whether the namespace still has the owner, the place and the generation that it had when it was mapped. */
int weir_namespace_check(const weir_namespace_handle *handle);
/* Copies, after that check; an error where memory is gone. What was written is seen by other hosts. */
int weir_namespace_read(const weir_namespace_handle *handle, uint64_t at, void *into, size_t bytes);
int weir_namespace_write(const weir_namespace_handle *handle, uint64_t at, const void *from, size_t bytes);
/* Writes lines back and drops them: before others read what was stored, and before reading what others stored. */
int weir_namespace_flush(const weir_namespace_handle *handle, uint64_t at, size_t bytes);

/* A heap in a namespace of zeros. Allocations are offsets in the namespace, 0 where there is no room. */
int weir_namespace_heap(const weir_namespace_handle *handle);
uint64_t weir_namespace_malloc(const weir_namespace_handle *handle, size_t bytes);
int weir_namespace_free(const weir_namespace_handle *handle, uint64_t offset);

/* The last error of this thread. */
const char *weir_namespace_error(void);

#ifdef __cplusplus
}
#endif
#endif
