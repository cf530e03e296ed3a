/* A plugin of QEMU's user mode: writes each access to memory as an entry of DynamoRIO's drmemtrace.
 *
 * Before a load whose address was computed from a loaded value there is an entry of a type that drmemtrace does not have,
 * with the address of that value. Registers are followed by the text of instructions (AT&T syntax, x86-64): within a
 * block when it is translated, and from block to block when it runs. Values that were stored and loaded again, and those in
 * vector registers, are not followed. Without the text (no Capstone in QEMU, or another processor) there are no such entries.
 *
 * The functions of QEMU are declared here (include/qemu/qemu-plugin.h, versions 1 and later), since distributions
 * seldom have the header.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(meminfo);
_Bool qemu_plugin_mem_is_store(meminfo);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

/* Types of entries, and the descriptor that they are written to. */
enum { READ = 0, WRITE = 1, INSTRUCTIONS = 17, THREAD = 22, HEADER = 25, FROM = 0x7757 };
enum { RECORDS = 198, ENTRIES = 8192, LOADS_AND_STORES = 3 };
/* General registers, instructions of a block at most, and what a value was computed from: no load, a register as it was
 * when the block began, or the load of an instruction of the block. */
enum { REGISTERS = 16, LONGEST = 512, NOTHING = 0, REGISTER = 1, LOAD = REGISTER + REGISTERS };

/* An instruction, and what its address is computed from. */
struct instruction {
    uint16_t at, from;
};

/* What a block leaves in registers. */
struct block {
    int instructions;
    uint16_t registers[REGISTERS];
};

struct __attribute__((packed)) entry {
    uint16_t type, size;
    uint64_t value;
};

/* What a thread has not written yet; its first entry names the thread. */
struct buffer {
    struct entry entries[ENTRIES];
    int filled;
    struct buffer *next;
    /* Addresses of the loads that registers were computed from, 0 for none, and of the loads of the current block. */
    uint64_t registers[REGISTERS], loaded[LONGEST];
    const struct block *block;
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

static inline uint64_t address_of(const struct buffer *buffer, unsigned from)
{
    if (from >= LOAD)
        return buffer->loaded[from - LOAD];
    return from == NOTHING ? 0 : buffer->registers[from - REGISTER];
}

static void access_(unsigned cpu, meminfo info, uint64_t address, void *data)
{
    const struct instruction *instruction = data;
    struct buffer *buffer = mine ? mine : begin();
    uint64_t from;

    if (qemu_plugin_mem_is_store(info)) {
        put(WRITE, 1 << qemu_plugin_mem_size_shift(info), address);
        return;
    }
    from = address_of(buffer, instruction->from);
    buffer->loaded[instruction->at] = address;
    if (from)
        put(FROM, 0, from);
    put(READ, 1 << qemu_plugin_mem_size_shift(info), address);
}

static void block(unsigned cpu, void *data)
{
    const struct block *next = data;
    struct buffer *buffer = mine ? mine : begin();

    if (buffer->block) {
        uint64_t after[REGISTERS];

        for (int n = 0; n < REGISTERS; n++)
            after[n] = address_of(buffer, buffer->block->registers[n]);
        memcpy(buffer->registers, after, sizeof after);
    }
    buffer->block = next;
    put(INSTRUCTIONS, next->instructions, 0);
}

/* The general register that a name begins with, of any width; -1 for others. The stack pointer is computed from no load. */
static int register_of(const char *name)
{
    static const char *const old[] = {"ax", "bx", "cx", "dx", "si", "di", "bp"};

    if (*name++ != '%')
        return -1;
    if (*name == 'r' && name[1] >= '0' && name[1] <= '9') {
        int number = atoi(name + 1);
        return number >= 8 && number < REGISTERS ? number : -1;
    }
    if (*name == 'r' || *name == 'e')
        name++;
    for (int n = 0; n < 7; n++) {
        const char *whole = old[n];
        if (name[0] == whole[0] && (name[1] == whole[1] || (n < 4 && (name[1] == 'l' || name[1] == 'h'))))
            return n;
    }
    return -1;
}

/* What is computed from two values: the later load of both counts. */
static unsigned both(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

/* What an operand is computed from: the registers in its text. */
static unsigned operand(const char *text, const char *end, const uint16_t *registers)
{
    unsigned from = NOTHING;

    for (; text < end; text++) {
        int number = *text == '%' ? register_of(text) : -1;
        if (number >= 0)
            from = both(from, registers[number]);
    }
    return from;
}

/* Follows an instruction; what its address is computed from. */
static unsigned follow(const char *text, unsigned at, uint16_t *registers)
{
    const char *space = strchr(text, ' '), *last, *end, *memory;
    unsigned address = NOTHING, from;
    int to, move;

    if (!space || *text == 'j' || !strncmp(text, "nop", 3))
        return NOTHING;
    end = text + strlen(text);
    last = space + 1;
    for (const char *c = last, *depth = 0; c < end; c++) {
        depth = *c == '(' ? c : *c == ')' ? 0 : depth;
        if (*c == ',' && !depth)
            last = c + 2;
    }
    memory = strchr(space, '(');
    if (memory)
        address = operand(memory, strchr(memory, ')') ? strchr(memory, ')') : end, registers);
    to = last < end ? register_of(last) : -1;
    if (to < 0 || !strncmp(text, "cmp", 3) || !strncmp(text, "test", 4) || !strncmp(text, "push", 4) ||
        !strncmp(text, "call", 4))
        return address;
    move = !strncmp(text, "mov", 3) || !strncmp(text, "lea", 3) || !strncmp(text, "pop", 3);
    from = move ? NOTHING : registers[to];
    if (!strncmp(text, "lea", 3))
        from = address;
    else if (memory || !strncmp(text, "pop", 3))
        from = LOAD + at;
    else if (last > space + 1)
        from = both(from, operand(space, last, registers));
    /* A register without itself is a constant. */
    if ((!strncmp(text, "xor", 3) || !strncmp(text, "sub", 3)) && register_of(space + 1) == to)
        from = NOTHING;
    registers[to] = from;
    return address;
}

static void translated(id_t_ id, struct qemu_plugin_tb *tb)
{
    size_t count = qemu_plugin_tb_n_insns(tb);
    /* Blocks are kept as long as they may run, which is to the end. */
    struct block *made = calloc(1, sizeof *made);
    struct instruction *all = calloc(count, sizeof *all);

    if (!made || !all)
        abort();
    made->instructions = count;
    for (int n = 0; n < REGISTERS; n++)
        made->registers[n] = REGISTER + n;
    for (size_t n = 0; n < count; n++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, n);
        char *text = qemu_plugin_insn_disas(instruction);

        all[n].at = n % LONGEST;
        if (text)
            all[n].from = follow(text, n % LONGEST, made->registers);
        free(text);
        qemu_plugin_register_vcpu_mem_cb(instruction, access_, 0, LOADS_AND_STORES, &all[n]);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block, 0, made);
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
