/* A plugin of QEMU's user mode for x86-64: writes what a program does to a pool, which is a mapped file, as lines of text.
 *
 * Lines are events of a trace of `weir persist check`, each with the place of its instruction, `MODULE+0xOFFSET`, after a tab, and
 * after another tab that of the call in the program which led there. Lines that begin with `!` are for Weir.
 *
 * QEMU reports stores, but not flushes and fences, which it executes as nothing: they are known by their opcodes, and the
 * address of a flush is computed from registers. The interface of QEMU 7 and 8 gives no registers. Where each block has one
 * instruction they are in memory when a callback runs, and the code of QEMU has the address of that memory in %rbp
 * (tcg/i386/tcg-target.h, TCG_AREG0; target/i386/cpu.h: CPUX86State begins with 16 registers and the instruction pointer).
 * The instruction pointer there must be the instruction's: otherwise the plugin ends the program with an error.
 *
 * Weir writes `names.h`, which defines POOL and PROGRAM, and compiles this file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "names.h"
#include "opcodes.h"

typedef uint64_t id_t_;
typedef uint32_t meminfo;
typedef uint64_t word;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(id_t_, void (*)(id_t_, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, meminfo, word, void *), int, int,
                                      void *);
void qemu_plugin_register_vcpu_syscall_cb(id_t_, void (*)(id_t_, unsigned, int64_t, word, word, word, word, word, word,
                                                          word, word));
void qemu_plugin_register_vcpu_syscall_ret_cb(id_t_, void (*)(id_t_, unsigned, int64_t, int64_t));
void qemu_plugin_register_atexit_cb(id_t_, void (*)(id_t_, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
word qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(meminfo);
_Bool qemu_plugin_mem_is_store(meminfo);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

/* Descriptor of the lines; ranges of addresses that have the pool; calls that are followed; bytes of one event. */
enum { RECORDS = 198, LOADS_AND_STORES = 3, REGISTERS_ARE_READ = 1, LINE = 64, RANGES = 64, CALLS = 1024, MOST = 2048 };

struct range {
    word from, to, offset;
};

/* What all processes of the program share. */
static struct shared {
    pthread_mutex_t lock;
    unsigned threads, last;
    word size;
    _Bool began;
} *shared;

struct thread {
    unsigned number;
    /* Whether a flush or a non-temporal store waits for a fence. */
    _Bool open;
    /* A store of which more pieces may follow. */
    struct instruction *of;
    word offset;
    unsigned length;
    unsigned char bytes[MOST + LINE];
    /* The system call that runs, and the place of its file before. */
    struct instruction *system;
    int64_t call;
    word words[6];
    off_t place;
    /* Calls: the stack pointer before each, and its instruction. */
    struct {
        word stack;
        struct instruction *by;
    } calls[CALLS];
    unsigned depth;
    struct thread *next;
};

static __thread struct thread *mine;
static struct thread *all;
static struct range ranges[RANGES];
static int ranged;
/* What is added to an address of the program. */
static word base;
static struct stat pool;

static _Bool put(const char *text, size_t left)
{
    while (left > 0) {
        ssize_t written = write(RECORDS, text, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return 0;
        text += written;
        left -= written;
    }
    return 1;
}

/* A line for Weir. */
static void say(const char *format, ...)
{
    char text[4608];
    va_list list;
    int length;

    va_start(list, format);
    length = vsnprintf(text, sizeof text - 1, format, list);
    va_end(list);
    if (length >= (int)sizeof text - 1)
        length = sizeof text - 2;
    text[length] = '\n';
    put(text, length + 1);
}

static void fail(const char *why)
{
    say("!error %s", why);
    _exit(1);
}

static void lock(void)
{
    /* Another process was killed while it had the lock. */
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&shared->lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&shared->lock);
}

static struct thread *self(void)
{
    if (!mine) {
        mine = calloc(1, sizeof *mine);
        if (!mine)
            fail("there is no memory for what is known of a thread");
        lock();
        mine->next = all;
        all = mine;
        unlock();
    }
    return mine;
}

/* A forked process has one thread, which is a new one. */
static void forked(void)
{
    all = mine;
    if (mine) {
        mine->number = 0;
        mine->next = 0;
        mine->of = 0;
        mine->open = 0;
    }
}

/* Finds the place of an instruction in its file. */
static void locate(struct instruction *one)
{
    char line[4608], path[4096] = "", text[4224];
    unsigned long from, to, offset, at = one->at + base;
    FILE *maps;

    if (one->where)
        return;
    snprintf(text, sizeof text, "0x%lx", (unsigned long)one->at);
    maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &from, &to, &offset, path) == 4 && at >= from &&
            at < to && *path == '/') {
            snprintf(text, sizeof text, "%s+0x%lx", path, at - from + offset);
            one->own = !strcmp(path, PROGRAM);
        }
    if (maps)
        fclose(maps);
    one->where = strdup(text);
    if (!one->where)
        fail("there is no memory for a place");
}

/* Writes an event of a thread. */
static void event(struct thread *thread, struct instruction *by, const char *text)
{
    char line[2 * (MOST + LINE) + 3 * 4224];
    struct instruction *caller = 0;
    int length = 0;

    locate(by);
    for (unsigned n = thread->depth; !by->own && !caller && n > 0; n--) {
        locate(thread->calls[n - 1].by);
        if (thread->calls[n - 1].by->own)
            caller = thread->calls[n - 1].by;
    }
    lock();
    if (!thread->number)
        thread->number = ++shared->threads;
    if (thread->number != (shared->last ? shared->last : 1))
        length = sprintf(line, "by 0.%u\n", thread->number - 1);
    shared->last = thread->number;
    length += snprintf(line + length, sizeof line - length - 1, "%s\t%s%s%s", text, by->where, caller ? "\t" : "",
                       caller ? caller->where : "");
    line[length] = '\n';
    if (!put(line, length + 1))
        _exit(1);
    unlock();
}

static void store(struct thread *thread, struct instruction *by, word offset, const unsigned char *bytes, unsigned length)
{
    static const char digits[] = "0123456789abcdef";
    static const char *const words[] = {"store", "nt-store", "locked"};
    enum kind kind = by->kind > LOCKED ? STORE : by->kind;
    char text[2 * (MOST + LINE) + 64];
    int at = sprintf(text, "%s %lu ", words[kind], (unsigned long)offset);

    for (unsigned n = 0; n < length; n++) {
        text[at++] = digits[bytes[n] >> 4];
        text[at++] = digits[bytes[n] & 15];
    }
    text[at] = 0;
    thread->open = kind == NT_STORE || (thread->open && kind != LOCKED);
    event(thread, by, text);
}

/* Writes the store of which more pieces could have followed. */
static void finish(struct thread *thread)
{
    struct instruction *by = thread->of;

    thread->of = 0;
    if (by)
        store(thread, by, thread->offset, thread->bytes, thread->length);
}

static void fence(struct thread *thread, struct instruction *by)
{
    finish(thread);
    thread->open = 0;
    event(thread, by, "fence");
}

static void flush(struct thread *thread, struct instruction *by, word offset)
{
    char text[64];

    finish(thread);
    sprintf(text, by->kind == CLFLUSH ? "clflush %lu" : "flush %lu", (unsigned long)offset);
    thread->open = 1;
    event(thread, by, text);
}

/* The offset of an address in the pool; -1 outside. */
static int64_t offset_of(word address)
{
    for (int n = 0; n < ranged; n++)
        if (address >= ranges[n].from && address < ranges[n].to)
            return address - ranges[n].from + ranges[n].offset;
    return -1;
}

static void accessed(unsigned cpu, meminfo info, word address, void *data)
{
    struct instruction *by = data;
    unsigned length = 1u << qemu_plugin_mem_size_shift(info);
    struct thread *thread;
    int64_t offset;

    /* QEMU 7.2 also calls for loads where stores are asked for. */
    if (!ranged || !qemu_plugin_mem_is_store(info))
        return;
    thread = self();
    offset = offset_of(address);
    if (thread->of && (thread->of != by || offset != (int64_t)(thread->offset + thread->length)))
        finish(thread);
    if (offset < 0) {
        if (by->kind == LOCKED && thread->open)
            fence(thread, by);
        return;
    }
    if (!thread->of) {
        thread->of = by;
        thread->offset = offset;
        thread->length = 0;
    }
    /* The callback comes after the store. */
    memcpy(thread->bytes + thread->length, (void *)(address + base), length);
    thread->length += length;
    if (by->widest ? thread->length >= by->widest || length < 8
                   : thread->length >= MOST && ((thread->offset + thread->length) % LINE == 0 ||
                                                thread->length + 8 > sizeof thread->bytes))
        finish(thread);
}

/* Words of the program, without what would end a line. */
static void words_at(word address, char *into, size_t most)
{
    const char *from = (const char *)(address + base);
    size_t n = 0;

    for (; address && n + 1 < most && from[n]; n++)
        into[n] = (unsigned char)from[n] < ' ' ? ' ' : from[n];
    into[n] = 0;
}

/* Runs before an instruction that is no plain store; `registers` are those of the program. */
__attribute__((used, visibility("hidden"))) void weir_executes(unsigned cpu, void *data, const word *registers)
{
    struct instruction *by = data;
    struct thread *thread = self();
    word address, stack;
    int64_t offset;
    char first[32], second[1024], text[1088];

    if (registers[RIP] != by->at)
        fail("the registers of this QEMU cannot be read: QEMU 7.2 is known to work");
    switch (by->kind) {
    case CALL:
        stack = registers[RSP];
        while (thread->depth && thread->calls[thread->depth - 1].stack <= stack)
            thread->depth--;
        if (thread->depth < CALLS) {
            thread->calls[thread->depth].stack = stack;
            thread->calls[thread->depth++].by = by;
        }
        return;
    case RETURN:
        stack = registers[RSP] + 8;
        while (thread->depth && thread->calls[thread->depth - 1].stack <= stack)
            thread->depth--;
        return;
    case SYSTEM:
        thread->system = by;
        return;
    case NOTE:
        words_at(registers[RDI], first, sizeof first);
        words_at(registers[RSI], second, sizeof second);
        snprintf(text, sizeof text, "%s %s", first, second);
        finish(thread);
        event(thread, by, text);
        return;
    case FENCE:
        if (shared->began)
            fence(thread, by);
        return;
    default:
        break;
    }
    if (!ranged)
        return;
    if (by->segment)
        fail("the program flushes an address relative to a segment, which is not followed");
    address = by->displacement + (by->base == NONE ? 0 : registers[by->base]) +
              (by->index == NONE ? 0 : registers[by->index] << by->scale);
    if (by->short_addresses)
        address = (uint32_t)address;
    offset = offset_of(address);
    if (offset >= 0 && (word)offset < shared->size)
        flush(thread, by, offset / LINE * LINE);
}

/* Gives the callback the address of the registers. */
void weir_executed(unsigned cpu, void *data);
__asm__(".text\n.hidden weir_executed\nweir_executed:\n\tmov %rbp, %rdx\n\tjmp weir_executes\n");

#include "calls.h"

static void translated(id_t_ id, struct qemu_plugin_tb *tb)
{
    size_t count = qemu_plugin_tb_n_insns(tb);

    if (count != 1)
        fail("this QEMU translates more than one instruction at once");
    struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, 0);
    const uint8_t *code = qemu_plugin_insn_haddr(instruction);
    /* Instructions are kept as long as they may run, which is to the end. */
    struct instruction *one = malloc(sizeof *one);

    if (!one || !code)
        fail("an instruction cannot be read");
    *one = decode(qemu_plugin_insn_vaddr(instruction), code);
    base = (word)code - one->at;
    if (one->kind > LOCKED)
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, weir_executed, REGISTERS_ARE_READ, one);
    qemu_plugin_register_vcpu_mem_cb(instruction, accessed, 0, LOADS_AND_STORES, one);
}

static void ended(id_t_ id, void *data)
{
    for (struct thread *thread = all; thread; thread = thread->next)
        finish(thread);
}

EXPORT int qemu_plugin_install(id_t_ id, const void *info, int argc, char **argv)
{
    pthread_mutexattr_t kind;

    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &kind);
    pthread_atfork(0, 0, forked);
    /* Programs that are started are not recorded. */
    fcntl(RECORDS, F_SETFD, FD_CLOEXEC);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, calls);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, called);
    qemu_plugin_register_atexit_cb(id, ended, 0);
    return 0;
}
