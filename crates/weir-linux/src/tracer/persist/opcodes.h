/* Instructions of x86-64 that matter for persistence, by their bytes (Intel SDM, volume 2, "Instruction format" and appendix A). */

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, RIP = 16, NONE = -1 };

enum kind { STORE, NT_STORE, LOCKED, FLUSH, CLFLUSH, FENCE, NOTE, CALL, RETURN, SYSTEM };

struct instruction {
    uint64_t at;
    enum kind kind;
    /* Bytes of one store at most, which QEMU may make in pieces of 8; 0 for a string instruction that repeats, whose stores may
     * arrive in any order (SDM, volume 3, "Fast-string operation and out-of-order stores"). */
    unsigned widest;
    /* The operand in memory: registers and what is added. */
    int base, index, scale;
    int64_t displacement;
    _Bool short_addresses, segment;
    /* Its place in a file, and whether that is the program's, once asked for. */
    char *where;
    _Bool own;
};

/* The displacement of the `nopl` by which the program gives a note: the words are at %rdi and %rsi (weir_persist.h). */
#define NOTE_MARK 0x57656972

/* Reads the operand at a ModRM byte. */
static void operand(struct instruction *one, const uint8_t *code, uint8_t rex)
{
    int mode = code[0] >> 6, low = code[0] & 7, bytes = mode == 1 ? 1 : mode == 2 ? 4 : 0;
    const uint8_t *more = code + 1;

    one->base = low | (rex & 1) << 3;
    one->index = NONE;
    if (low == 4) {
        int index = (more[0] >> 3 & 7) | (rex & 2) << 2;
        one->base = (more[0] & 7) | (rex & 1) << 3;
        one->scale = more[0] >> 6;
        one->index = index == RSP ? NONE : index;
        if (mode == 0 && (more[0] & 7) == 5)
            one->base = NONE, bytes = 4;
        more++;
    } else if (mode == 0 && low == 5) {
        one->base = RIP;
        bytes = 4;
    }
    if (bytes == 1)
        one->displacement = (int8_t)more[0];
    if (bytes == 4) {
        int32_t whole;
        memcpy(&whole, more, 4);
        one->displacement = whole;
    }
    /* A flush has nothing after its operand. */
    if (one->base == RIP)
        one->displacement += more + 4 - code;
}

/* Vectors that are stored whole: `prefix` is 0x66, 0xf2, 0xf3 or 0. */
static _Bool stores_vector(uint8_t opcode, uint8_t prefix)
{
    switch (opcode) {
    case 0x11: /* movups, movupd; with the other prefixes one element */
    case 0x29: /* movaps */
    case 0x2b: /* movntps */
        return prefix == 0 || prefix == 0x66;
    case 0x7f: /* movdqa, movdqu */
        return prefix == 0x66 || prefix == 0xf3;
    case 0xe7: /* movntdq */
        return prefix == 0x66;
    }
    return 0;
}

static _Bool is_nontemporal(uint8_t opcode)
{
    return opcode == 0x2b || opcode == 0xc3 || opcode == 0xe7 || opcode == 0xf7;
}

/* What the instruction at `code` is. */
static struct instruction decode(uint64_t at, const uint8_t *code)
{
    struct instruction one = {.at = at, .kind = STORE, .widest = 8, .base = NONE, .index = NONE};
    const uint8_t *begin = code;
    uint8_t prefix = 0, rex = 0, locked = 0, repeats = 0, reg;

    for (;; code++) {
        if (*code == 0x66)
            prefix = prefix ? prefix : 0x66;
        else if (*code == 0xf2 || *code == 0xf3)
            prefix = repeats = *code;
        else if (*code == 0xf0)
            locked = 1;
        else if (*code == 0x67)
            one.short_addresses = 1;
        else if (*code == 0x64 || *code == 0x65)
            one.segment = 1;
        else if (*code != 0x2e && *code != 0x36 && *code != 0x3e && *code != 0x26)
            break;
    }
    if ((*code & 0xf0) == 0x40)
        rex = *code++;
    if (locked)
        one.kind = LOCKED, one.widest = 16;
    /* VEX: opcodes of the same numbers, 32 bytes where L is 1. */
    if (*code == 0xc5 || *code == 0xc4) {
        static const uint8_t prefixes[] = {0, 0x66, 0xf3, 0xf2};
        int map = *code == 0xc5 ? 1 : code[1] & 31;
        uint8_t last = *code == 0xc5 ? code[1] : code[2], opcode = *code == 0xc5 ? code[2] : code[3];
        if (map == 1 && stores_vector(opcode, prefixes[last & 3]))
            one.widest = last & 4 ? 32 : 16;
        if (map == 1 && is_nontemporal(opcode))
            one.kind = NT_STORE;
        /* vextractf128, vextracti128 */
        if (map == 3 && (opcode == 0x19 || opcode == 0x39))
            one.widest = 16;
        return one;
    }
    if (*code != 0x0f) {
        reg = code[1] >> 3 & 7;
        if ((*code == 0x86 || *code == 0x87) && code[1] < 0xc0)
            one.kind = LOCKED; /* xchg with memory */
        else if (repeats && (*code == 0xa4 || *code == 0xa5 || *code == 0xaa || *code == 0xab))
            one.widest = 0; /* movs, stos */
        else if (*code == 0xe8 || (*code == 0xff && reg == 2))
            one.kind = CALL;
        else if (*code == 0xc2 || *code == 0xc3)
            one.kind = RETURN;
        return one;
    }
    code++;
    reg = code[1] >> 3 & 7;
    if (stores_vector(*code, prefix))
        one.widest = 16;
    if (is_nontemporal(*code))
        one.kind = NT_STORE;
    if (*code == 0x05)
        one.kind = SYSTEM;
    if (*code == 0xae && code[1] >= 0xc0 && (reg == 6 || reg == 7) && !prefix)
        one.kind = FENCE; /* mfence, sfence */
    if (*code == 0xae && code[1] < 0xc0 && (reg == 7 || (reg == 6 && prefix == 0x66))) {
        one.kind = prefix ? FLUSH : CLFLUSH; /* clflushopt and clwb, clflush */
        operand(&one, code + 1, rex);
        if (one.base == RIP)
            one.displacement += code + 1 - begin;
    }
    if (*code == 0x1f && code[1] == 0x84) {
        operand(&one, code + 1, rex);
        one.kind = one.displacement == NOTE_MARK ? NOTE : STORE;
    }
    return one;
}
