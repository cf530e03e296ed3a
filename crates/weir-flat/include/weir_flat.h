/* A file cache that attaches its pages to buffers instead of copying them (docs/flat.md). Every function may be called by
 * any thread; a buffer is used by one thread at a time.
 *
 * Functions that return an int return 0, or -1 on an error; those that return a pointer, null on an error.
 * weir_flat_error() says why, for the calling thread.
 *
 * Link with -lweir_flat (`cargo build --release -p weir-flat`: target/release/libweir_flat.so and .a). */
#ifndef WEIR_FLAT_H
#define WEIR_FLAT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_flat_store weir_flat_store;
typedef struct weir_flat_file_handle weir_flat_file_handle;
typedef struct weir_flat_buffer_handle weir_flat_buffer_handle;

/* Opens the store in a file or a DAX device. With create > 0, an absent or empty file gets that many bytes. cache is
 * bytes of DRAM, 0 for 64 MiB. Dirty pages are flushed every 10 ms. */
weir_flat_store *weir_flat_open(const char *path, uint64_t create, uint64_t cache);
/* Flushes, and closes. The medium stays locked while there are buffers and files. */
int weir_flat_close(weir_flat_store *store);

/* A file of the store; with create != 0 it is made, and must not exist. */
weir_flat_file_handle *weir_flat_file(const weir_flat_store *store, const char *name, int create);
void weir_flat_file_close(weir_flat_file_handle *file);
int weir_flat_remove(const weir_flat_store *store, const char *name);

/* What was written outlives the process; after a sync, also the machine. A sync is an error where the medium cannot
 * promise that. */
int weir_flat_flush(const weir_flat_store *store);
int weir_flat_sync(const weir_flat_store *store);

/* A buffer of zeros. */
weir_flat_buffer_handle *weir_flat_buffer(const weir_flat_store *store, size_t bytes);
void weir_flat_buffer_free(weir_flat_buffer_handle *buffer);
/* Its window: what the last read filled, and what the next write writes. */
void *weir_flat_bytes(weir_flat_buffer_handle *buffer, size_t *length);
int weir_flat_window(weir_flat_buffer_handle *buffer, size_t start, size_t length);
/* Fresh frames with any content, which the next write hands over without copying. */
int weir_flat_renew(weir_flat_buffer_handle *buffer);

/* Reads up to length bytes by mapping pages, and returns how many, or -1. With modify != 0 they are copied once, so that
 * no store makes the kernel copy a page. */
ssize_t weir_flat_read(const weir_flat_file_handle *file, uint64_t offset, size_t length,
                       weir_flat_buffer_handle *buffer, int modify);
/* Writes the window of the buffer. */
int weir_flat_write(const weir_flat_file_handle *file, uint64_t offset, weir_flat_buffer_handle *buffer);

/* The last error of this thread. */
const char *weir_flat_error(void);

#ifdef __cplusplus
}
#endif
#endif
