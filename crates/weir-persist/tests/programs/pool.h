/* A pool of 4 KiB in a file, flushes and fences. */
#ifndef POOL_H
#define POOL_H
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weir_persist.h"

enum { POOL = 4096 };

static inline char *map(const char *name)
{
    int file = open(name, O_RDWR | O_CREAT, 0600);
    char *pool;

    if (file < 0 || ftruncate(file, POOL) < 0) {
        perror(name);
        exit(1);
    }
    pool = mmap(0, POOL, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (pool == MAP_FAILED) {
        perror(name);
        exit(1);
    }
    return pool;
}

#define flush(at) __asm__ volatile("clwb %0" : "+m"(*(volatile char *)(at)))
#define fence() __asm__ volatile("sfence" : : : "memory")
#endif
