/* What a program says of its pool, for `weir persist` (docs/persist.md of Weir).
 *
 * Marks and requirements are for `weir persist record`; elsewhere each costs one instruction that does nothing.
 *
 * weir_store, weir_flush and weir_fence do what they say, and write a trace themselves where WEIR_PERSIST_TRACE names a file; so a
 * program is checked on any processor and without a recorder. Threads are those of one process.
 */
#ifndef WEIR_PERSIST_H
#define WEIR_PERSIST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all files of the program share. */
__attribute__((weak)) struct {
    FILE *trace;
    const unsigned char *pool;
    int threads, last;
} weir_persist;
__attribute__((weak)) __thread int weir_persist_thread;

/* Begins an event of the own trace; 0 where none is written. */
static inline FILE *weir_event(void)
{
    FILE *trace = weir_persist.trace;

    if (!trace)
        return 0;
    flockfile(trace);
    if (!weir_persist_thread)
        weir_persist_thread = ++weir_persist.threads;
    if (weir_persist_thread != weir_persist.last)
        fprintf(trace, "by 0.%d\n", weir_persist_thread - 1);
    weir_persist.last = weir_persist_thread;
    return trace;
}

/* Ends it; notes have no place. */
static inline void weir_event_end(FILE *trace, const char *file, int line)
{
    const char *name = file ? strrchr(file, '/') : 0;

    if (file)
        fprintf(trace, " @%s:%d", name ? name + 1 : file, line);
    fputc('\n', trace);
    fflush(trace);
    funlockfile(trace);
}

static inline void weir_bytes(FILE *trace, const char *word, const void *at, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)at;

    fprintf(trace, "%s %zu ", word, (size_t)(bytes - weir_persist.pool));
    for (size_t n = 0; n < length; n++)
        fprintf(trace, "%02x", bytes[n]);
}

static inline void weir_own_note(const char *word, const char *text)
{
    FILE *trace = weir_event();

    if (trace) {
        fprintf(trace, "%s %s", word, text);
        weir_event_end(trace, 0, 0);
    }
}

/* An instruction that does nothing, by which the recorder knows a note. */
#ifdef __x86_64__
#define weir_seen_note(word, text) \
    __asm__ volatile("nopl 0x57656972(%%rax,%%rax,1)" : : "D"(word), "S"(text) : "memory")
#else
#define weir_seen_note(word, text) ((void)0)
#endif

#define weir_note(word, text)        \
    do {                             \
        const char *weir_ = (text);  \
        weir_own_note(word, weir_);  \
        weir_seen_note(word, weir_); \
    } while (0)

/* A point that recovery may ask for, such as "committed 3". */
#define weir_mark(text) weir_note("mark", text)
/* From here each state must meet this: "NAME [OFFSET=HEX ->] OFFSET=HEX[|HEX]". */
#define weir_require(text) weir_note("require", text)
#define weir_forget(name) weir_note("forget", name)

/* Names the pool, once, before it is stored into: the own trace begins with its bytes. */
static inline void weir_pool(const void *pool, size_t bytes)
{
    const char *name = getenv("WEIR_PERSIST_TRACE");
    FILE *trace = name && *name ? fopen(name, "w") : 0;

    if (!trace)
        return;
    weir_persist.pool = (const unsigned char *)pool;
    fprintf(trace, "weir-persist 1\npool %zu\n", bytes);
    for (size_t n = 0; n < bytes; n++)
        if (weir_persist.pool[n])
            fprintf(trace, "init %zu %02x\n", n, weir_persist.pool[n]);
    weir_persist_thread = weir_persist.threads = weir_persist.last = 1;
    weir_persist.trace = trace;
}

static inline void weir_store_at(void *to, const void *from, size_t length, const char *file, int line)
{
    FILE *trace = weir_event();

    memcpy(to, from, length);
    if (trace) {
        weir_bytes(trace, "store", to, length);
        weir_event_end(trace, file, line);
    }
}

static inline void weir_flush_at(const void *at, size_t length, const char *file, int line)
{
    FILE *trace = weir_event();

#ifdef __x86_64__
    for (size_t n = (size_t)at / 64 * 64; n < (size_t)at + length; n += 64)
        __asm__ volatile("clflush (%0)" : : "r"(n) : "memory");
#endif
    if (trace) {
        fprintf(trace, "clflush %zu %zu", (size_t)((const unsigned char *)at - weir_persist.pool), length);
        weir_event_end(trace, file, line);
    }
}

static inline void weir_fence_at(const char *file, int line)
{
    FILE *trace = weir_event();

    __sync_synchronize();
#ifdef __x86_64__
    __asm__ volatile("sfence" : : : "memory");
#endif
    if (trace) {
        fputs("fence", trace);
        weir_event_end(trace, file, line);
    }
}

#define weir_store(to, from, length) weir_store_at(to, from, length, __FILE__, __LINE__)
#define weir_flush(at, length) weir_flush_at(at, length, __FILE__, __LINE__)
#define weir_fence() weir_fence_at(__FILE__, __LINE__)

#endif
