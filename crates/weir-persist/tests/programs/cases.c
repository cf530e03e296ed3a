/* What else a program may do with a pool: cases POOL CASE. */
#define _GNU_SOURCE
#include "pool.h"

#include <immintrin.h>
#include <signal.h>
#include <pthread.h>
#include <sys/uio.h>
#include <sys/wait.h>

static char *pool;

static void *thread(void *offset)
{
    volatile char *at = pool + (size_t)offset;

    *at = 1;
    flush(at);
    fence();
    return 0;
}

__attribute__((target("avx"))) static void instructions(void)
{
    _mm256_storeu_si256((__m256i *)(pool + 60), _mm256_set1_epi8(1));
    _mm_storeu_si128((__m128i *)(pool + 128), _mm_set1_epi8(2));
    /* Loads are no events. */
    (void)*(volatile long *)(pool + 128);
    _mm_stream_si64((long long *)(pool + 192), 3);
    _mm_stream_si128((__m128i *)(pool + 256), _mm_set1_epi8(4));
    _mm256_stream_si256((__m256i *)(pool + 320), _mm256_set1_epi8(5));
    _mm_mfence();
    __sync_fetch_and_add((long *)(pool + 384), 6);
    __atomic_exchange_n((long *)(pool + 448), 7, __ATOMIC_SEQ_CST);
    void *to = pool + 512;
    size_t length = 70;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(length) : "a"(8) : "memory");
    _mm_clflush(pool + 512);
    __asm__ volatile("clflushopt 64(%0,%1,8)" : : "r"(pool), "r"(64L) : "memory");
    /* A locked instruction elsewhere is a fence for what was flushed. */
    long elsewhere = 0;
    __sync_fetch_and_add(&elsewhere, 1);
}

int main(int count, char **words)
{
    const char *name = words[1], *which = words[2];
    int file = open(name, O_RDWR | O_CREAT, 0600);
    volatile char *at;

    if (!strcmp(which, "never-maps"))
        return 0;
    if (!strcmp(which, "private")) {
        ftruncate(file, POOL);
        at = mmap(0, POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        at[0] = 1;
        return 0;
    }
    at = pool = map(name);
    if (!strcmp(which, "instructions"))
        instructions();
    if (!strcmp(which, "never-fences"))
        for (int n = 0; n < 4000; n++) {
            at[n] = n | 1;
            flush(&at[n]);
        }
    if (!strcmp(which, "maps-twice")) {
        volatile char *other = map(name);
        at[0] = 1;
        other[1] = 2;
        munmap((void *)at, POOL);
        other[2] = 3;
        other = mremap((void *)other, POOL, 2 * POOL, MREMAP_MAYMOVE);
        other[3] = 4;
        munmap((void *)other, 2 * POOL);
        /* Other memory may get the same addresses. */
        at = mmap(0, 2 * POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at[0] = 9;
        map(name)[64] = 5;
    }
    if (!strcmp(which, "forks")) {
        pid_t child = fork();
        if (child == 0) {
            at[64] = 2;
            flush(&at[64]);
            fence();
            _exit(0);
        }
        waitpid(child, 0, 0);
        at[0] = 1;
        flush(at);
        fence();
    }
    if (!strcmp(which, "threads")) {
        pthread_t one;
        for (size_t offset = 0; offset < 256; offset += 64) {
            pthread_create(&one, 0, thread, (void *)offset);
            pthread_join(one, 0);
        }
    }
    if (!strcmp(which, "dies")) {
        at[0] = 1;
        flush(at);
        raise(SIGKILL);
    }
    if (!strcmp(which, "synchronises")) {
        struct iovec parts[] = {{"ab", 2}, {"cd", 2}};
        at[0] = 1;
        msync(pool, 64, MS_SYNC);
        msync(pool, 64, MS_ASYNC);
        pwrite(file, "xyz", 3, 100);
        pwritev(file, parts, 2, 200);
        lseek(file, 300, SEEK_SET);
        write(file, "!", 1);
        fdatasync(file);
        ftruncate(file, 2 * POOL);
    }
    if (!strcmp(which, "shortens"))
        ftruncate(file, 100);
    if (!strcmp(which, "starts"))
        return system("true");
    if (!strcmp(which, "sleeps"))
        for (;;)
            at[0]++;
    if (!strcmp(which, "many"))
        for (long n = 0; n < atol(words[3]); n++) {
            at[n % 63 * 64 + 64] = n;
            flush(&at[n % 63 * 64 + 64]);
            fence();
        }
    return 0;
}
