/* A plugin of QEMU's user mode: writes each access to memory as an entry of DynamoRIO's drmemtrace.
 *
 * The functions of QEMU are declared here (include/qemu/qemu-plugin.h, versions 1 and later), since distributions
 * seldom have the header.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

typedef uint64_t id_t_;
typedef uint32_t meminfo;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(id_t_, void (*)(id_t_, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, meminfo, uint64_t, void *), int,
                                      int, void *);
void qemu_plugin_register_atexit_cb(id_t_, void (*)(id_t_, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
unsigned qemu_plugin_mem_size_shift(meminfo);
_Bool qemu_plugin_mem_is_store(meminfo);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

/* Types of entries, and the descriptor that they are written to. */
enum { READ = 0, WRITE = 1, INSTRUCTIONS = 17, THREAD = 22, HEADER = 25 };
enum { RECORDS = 198, ENTRIES = 8192, LOADS_AND_STORES = 3 };

struct __attribute__((packed)) entry {
    uint16_t type, size;
    uint64_t value;
};

/* What a thread has not written yet; its first entry names the thread. */
struct buffer {
    struct entry entries[ENTRIES];
    int filled;
    struct buffer *next;
};

static __thread struct buffer *mine;
static struct buffer *all;
static uint64_t threads;
static pid_t process;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void flush(struct buffer *buffer)
{
    const char *at = (const char *)buffer->entries;
    size_t left = buffer->filled * sizeof *buffer->entries;

    buffer->filled = 1;
    /* A process that was forked is another one. */
    if (getpid() != process)
        return;
    pthread_mutex_lock(&lock);
    while (left > 0) {
        ssize_t written = write(RECORDS, at, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        at += written;
        left -= written;
    }
    pthread_mutex_unlock(&lock);
}

static struct buffer *begin(void)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);

    if (!buffer)
        abort();
    pthread_mutex_lock(&lock);
    buffer->entries[0] = (struct entry){THREAD, 8, ++threads};
    buffer->filled = 1;
    buffer->next = all;
    all = buffer;
    pthread_mutex_unlock(&lock);
    return mine = buffer;
}

static inline void put(uint16_t type, uint16_t size, uint64_t value)
{
    struct buffer *buffer = mine ? mine : begin();

    buffer->entries[buffer->filled++] = (struct entry){type, size, value};
    if (buffer->filled == ENTRIES)
        flush(buffer);
}

static void access_(unsigned cpu, meminfo info, uint64_t address, void *data)
{
    put(qemu_plugin_mem_is_store(info) ? WRITE : READ, 1 << qemu_plugin_mem_size_shift(info), address);
}

static void block(unsigned cpu, void *instructions)
{
    put(INSTRUCTIONS, (uint16_t)(uintptr_t)instructions, 0);
}

static void translated(id_t_ id, struct qemu_plugin_tb *tb)
{
    size_t count = qemu_plugin_tb_n_insns(tb);

    qemu_plugin_register_vcpu_tb_exec_cb(tb, block, 0, (void *)count);
    for (size_t n = 0; n < count; n++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, n), access_, 0, LOADS_AND_STORES, 0);
}

static void ended(id_t_ id, void *data)
{
    for (struct buffer *buffer = all; buffer; buffer = buffer->next)
        flush(buffer);
}

EXPORT int qemu_plugin_install(id_t_ id, const void *info, int argc, char **argv)
{
    struct entry header = {HEADER, 0, 5};

    process = getpid();
    if (write(RECORDS, &header, sizeof header) != sizeof header)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, 0);
    return 0;
}
