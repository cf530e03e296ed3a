/* System calls that map, write and synchronise the pool (Linux's numbers for x86-64). */

/* Whether a descriptor is of the pool. */
static _Bool is_pool(int fd)
{
    struct stat file;

    return shared->began && fstat(fd, &file) == 0 && file.st_dev == pool.st_dev && file.st_ino == pool.st_ino;
}

static void grown(word size)
{
    if (size > shared->size) {
        shared->size = size;
        say("!size %lu", (unsigned long)size);
    }
}

/* Takes addresses out of the ranges of the pool. */
static void unmapped(word from, word to)
{
    for (int n = 0; n < ranged; n++) {
        struct range old = ranges[n];

        if (from >= old.to || to <= old.from)
            continue;
        /* Other threads look at ranges: none that stays is away for a moment. */
        ranges[n] = ranges[ranged - 1];
        ranged--;
        n--;
        if (old.from < from)
            ranges[ranged++] = (struct range){old.from, from, old.offset};
        if (to < old.to && ranged < RANGES)
            ranges[ranged++] = (struct range){to, old.to, old.offset + (to - old.from)};
        /* What was added is outside of what goes. */
        if (old.from < from || to < old.to)
            n = -1;
    }
}

static void mapped(word from, word length, word offset)
{
    if (ranged >= RANGES - 2)
        fail("the program maps the pool more than 60 times at once");
    ranges[ranged++] = (struct range){from, from + length, offset};
}

/* Writes what the pool has before the program stores into it. Files tell where they have data; devices do not. */
static void begin(int fd, word from, word length, word size)
{
    static const unsigned char zeros[LINE];
    unsigned char bytes[MOST];
    char name[64], text[2 * MOST + 64];
    off_t at = 0;
    int file;

    sprintf(name, "/proc/self/fd/%d", fd);
    file = open(name, O_RDONLY | O_CLOEXEC);
    while (at < (off_t)size) {
        off_t data = file < 0 ? -1 : lseek(file, at, SEEK_DATA);
        ssize_t read = 0;

        if (data < 0 && file >= 0 && errno == ENXIO)
            break;
        if (data > at)
            at = data / MOST * MOST;
        if (file >= 0)
            read = pread(file, bytes, MOST, at);
        if (read <= 0 && (word)at < length) {
            read = length - at < MOST ? length - at : MOST;
            memcpy(bytes, (void *)(from + base + at), read);
        }
        if (read <= 0)
            fail("what the pool has before the run cannot be read");
        for (ssize_t n = 0; n < read;) {
            ssize_t end = n;
            int digits;

            /* Lines that are not zero, together. */
            for (; end < read; end += LINE)
                if (!memcmp(bytes + end, zeros, read - end < LINE ? read - end : LINE))
                    break;
            if (end > read)
                end = read;
            if (end > n) {
                digits = sprintf(text, "init %lu ", (unsigned long)(at + n));
                for (; n < end; n++)
                    digits += sprintf(text + digits, "%02x", bytes[n]);
                text[digits] = '\n';
                put(text, digits + 1);
            }
            n = end + LINE;
        }
        at += read;
    }
    if (file >= 0)
        close(file);
}

/* The pool was mapped: the record begins with the first time. */
static void maps(struct thread *thread, word from, const word *words)
{
    int fd = words[4];
    struct stat file, named;
    void *probe;

    unmapped(from, from + words[1]);
    if (words[3] & MAP_ANONYMOUS || fstat(fd, &file) < 0 || stat(POOL, &named) < 0 || file.st_dev != named.st_dev ||
        file.st_ino != named.st_ino)
        return;
    if (!(words[3] & MAP_SHARED)) {
        say("!private");
        return;
    }
    pool = file;
    if (!shared->began) {
        /* A device has no size; what is mapped of it is the pool. */
        word size = S_ISREG(file.st_mode) ? (word)file.st_size : words[5] + words[1];
        grown(size);
        /* QEMU 7 refuses MAP_SYNC to the program, whatever the kernel says. */
        probe = mmap(0, 4096, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
        if (probe != MAP_FAILED)
            munmap(probe, 4096);
        say("!sync %d", probe != MAP_FAILED);
        begin(fd, words[5] ? 0 : from, words[5] ? 0 : words[1], size);
        shared->began = 1;
    } else if (S_ISREG(file.st_mode)) {
        grown(file.st_size);
    }
    mapped(from, words[1], words[5]);
}

/* A part of the pool was written through a descriptor. */
static void wrote(struct thread *thread, int fd, word offset, word address, word length)
{
    grown(offset + length);
    while (length > 0) {
        word part = MOST - offset % LINE;

        part = part < length ? part : length;
        store(thread, thread->system, offset, (const unsigned char *)(address + base), part);
        offset += part;
        address += part;
        length -= part;
    }
}

/* The parts of a vectored write. */
static void wrote_parts(struct thread *thread, int fd, word offset, word parts, int64_t left)
{
    const struct iovec *part = (const struct iovec *)(parts + base);

    for (; left > 0; part++) {
        word length = part->iov_len < (word)left ? part->iov_len : (word)left;
        wrote(thread, fd, offset, (word)part->iov_base, length);
        offset += length;
        left -= length;
    }
}

/* The kernel wrote a part of the pool back and waited for that. */
static void synchronised(struct thread *thread, word offset, word length)
{
    char text[64];

    if (offset >= shared->size)
        return;
    if (length > shared->size - offset)
        length = shared->size - offset;
    sprintf(text, "sync %lu %lu", (unsigned long)offset, (unsigned long)length);
    thread->open = 0;
    event(thread, thread->system, text);
}

static void calls(id_t_ id, unsigned cpu, int64_t call, word a, word b, word c, word d, word e, word f, word g, word h)
{
    struct thread *thread = self();
    char name[1024];

    thread->call = call;
    memcpy(thread->words, (word[]){a, b, c, d, e, f}, sizeof thread->words);
    finish(thread);
    if (call == SYS_execve || call == SYS_execveat) {
        words_at(call == SYS_execve ? a : b, name, sizeof name);
        say("!exec %s", name);
    }
    if ((call == SYS_write || call == SYS_writev) && is_pool(a))
        thread->place = lseek(a, 0, SEEK_CUR);
}

static void called(id_t_ id, unsigned cpu, int64_t call, int64_t result)
{
    struct thread *thread = self();
    word *words = thread->words, offset = words[3];
    int fd = words[0];
    struct stat file;

    if ((result < 0 && result > -4096) || call != thread->call)
        return;
    switch (call) {
    case SYS_mmap:
        lock();
        maps(thread, result, words);
        unlock();
        return;
    case SYS_munmap:
        lock();
        unmapped(words[0], words[0] + words[1]);
        unlock();
        return;
    case SYS_mremap: {
        int64_t before = offset_of(words[0]);
        lock();
        unmapped(words[0], words[0] + words[1]);
        unmapped(result, result + words[2]);
        if (before >= 0)
            mapped(result, words[2], before);
        unlock();
        return;
    }
    case SYS_msync:
        for (int n = 0; n < ranged && words[2] & MS_SYNC; n++) {
            word from = words[0] > ranges[n].from ? words[0] : ranges[n].from;
            /* Whole pages are written. */
            word end = (words[0] + words[1] + 4095) & ~(word)4095;
            word to = end < ranges[n].to ? end : ranges[n].to;
            if (from < to)
                synchronised(thread, from - ranges[n].from + ranges[n].offset, to - from);
        }
        return;
    case SYS_sync:
        if (shared->began)
            synchronised(thread, 0, shared->size);
        return;
    }
    if (call == SYS_copy_file_range)
        fd = words[2];
    if (call == SYS_splice)
        fd = words[2];
    switch (call) {
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_splice:
        if (is_pool(fd))
            break;
        /* fallthrough */
    default:
        return;
    }
    switch (call) {
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
        synchronised(thread, 0, shared->size);
        return;
    case SYS_ftruncate:
    case SYS_fallocate:
        if (call == SYS_fallocate && words[1])
            fail("the program takes or clears a part of the pool with fallocate, which a trace cannot say");
        if (fstat(fd, &file) == 0 && (word)file.st_size < shared->size)
            fail("the program makes the pool shorter, which a trace cannot say");
        grown(file.st_size);
        return;
    case SYS_write:
    case SYS_writev:
        offset = fcntl(fd, F_GETFL) & O_APPEND ? lseek(fd, 0, SEEK_CUR) - result : thread->place;
        /* fallthrough */
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
        if (call == SYS_write || call == SYS_pwrite64)
            wrote(thread, fd, offset, words[1], result);
        else
            wrote_parts(thread, fd, offset, words[1], result);
        if (fcntl(fd, F_GETFL) & O_DSYNC)
            synchronised(thread, offset, result);
        return;
    }
    fail("the program writes into the pool from another file, which is not followed");
}
