/* An allocator by class of object. A class has a name that `weir place objects` shows, a place and a limit; a policy file
 * says which (docs/alloc.md). Every function may be called by any thread, and after a fork in both processes.
 *
 * Link with -lweir_alloc (`cargo build --release -p weir-alloc`: target/release/libweir_alloc.so and .a). */
#ifndef WEIR_ALLOC_H
#define WEIR_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_arenas weir_arenas;
typedef struct weir_class weir_class;

/* Sizes are bytes. */
typedef struct weir_class_stats {
    size_t mapped;  /* what the class has from the kernel */
    size_t used;    /* of that, what its objects may use */
    size_t objects; /* its objects */
} weir_class_stats;

/* The classes of a policy file; of a null pointer index, buffer, operator, temporary, log and cold without places.
 * Null where the policy is wrong: weir_alloc_error() says file, line and key. */
weir_arenas *weir_alloc_open(const char *policy_path);
/* Gives all memory of the classes back, used or not. */
void weir_alloc_close(weir_arenas *arenas);
/* What is not as the policy says, where it allows that: a line each, empty if nothing. */
const char *weir_alloc_notices(const weir_arenas *arenas);
/* Why the last call of this thread failed; valid until the next that fails. */
const char *weir_alloc_error(void);

/* A class, valid as long as the arenas; null where there is none of that name. */
const weir_class *weir_alloc_class(const weir_arenas *arenas, const char *name);
/* At least `size` bytes, not cleared, at a multiple of `align`: a power of two up to 4 MiB, or 0 for any. Null where the class
 * is at its limit or its nodes have no room. */
void *weir_alloc(const weir_class *class_, size_t size, size_t align);
/* Another size, in the same class. Null where that fails; the object is then what it was. */
void *weir_realloc(void *object, size_t size, size_t align);
/* 0, or -1 where no object begins there. A null pointer is nothing to free. */
int weir_free(void *object);
/* The bytes that an object may use; 0 where no object begins there. */
size_t weir_usable_size(const void *object);
/* 0, or -1 for a null pointer. */
int weir_alloc_stats(const weir_class *class_, weir_class_stats *to);
/* Gives memory without objects back, which is kept for the next ones. */
void weir_alloc_trim(const weir_class *class_);

#ifdef __cplusplus
}
#endif
#endif
