/* What a translated kernel and the virtual driver share: memory, and the checks of each access to it. */
#ifndef MACHINE_H
#define MACHINE_H
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Who touched an item last: a thread of the grid, several threads of one block, or several blocks. */
typedef struct {
    uint32_t launch, who, epoch;
} touch;

#define SEVERAL_OF_BLOCK 0x80000000u
#define SEVERAL_BLOCKS 0xFFFFFFFFu

typedef struct {
    touch wrote, read, atomic;
} mark;

typedef struct {
    uint64_t low, high;
    uint32_t item; /* bytes */
    uint64_t born, written; /* by the clock of the default stream */
    mark *marks;   /* one for each item, made when a kernel first touches the allocation */
} allocation;

enum { OUT_OF_BOUNDS, MISALIGNED, WIDTH, RACE, BARRIER, BESIDE_ATOMIC, UNWRITTEN, RANGE, ORDER, FAULTS };
enum { LOAD, STORE, ATOMIC };

typedef struct machine {
    allocation *allocations; /* by address */
    uint32_t count, launch, epoch, threads, block, shared_bytes;
    mark *shared_marks; /* one for each byte */
    uint64_t loaded, stored, instructions, barriers;
    void (*fault)(struct machine *, int kind, const char *what, uint64_t where, uint32_t thread, int line);
    void (*make_marks)(allocation *);
} machine;

typedef struct {
    const char *name;
    uint32_t parameters, shared_bytes, state_bytes;
    const uint8_t *sizes; /* bytes of each parameter */
    /* Runs one thread up to its next barrier, whose number it returns; -1 at the end. */
    int (*run)(machine *, void *state, void **parameters, uint8_t *shared, uint32_t thread);
    uint32_t *grid; /* of the launch */
} program;

static inline int same_thread(const touch *t, const machine *m, uint32_t who) {
    return t->launch != m->launch || t->who == who;
}

/* Whether a barrier of the block lies between that touch and now. */
static inline int parted(const touch *t, const machine *m) {
    uint32_t block = t->who & SEVERAL_OF_BLOCK ? t->who & ~SEVERAL_OF_BLOCK : t->who / m->threads;
    return t->who != SEVERAL_BLOCKS && block == m->block && t->epoch < m->epoch;
}

static inline int conflicts(const touch *t, const machine *m, uint32_t who) {
    return !same_thread(t, m, who) && !parted(t, m);
}

static inline void note(touch *t, const machine *m, uint32_t who) {
    if (t->launch == m->launch && t->who != who) {
        uint32_t block = t->who & SEVERAL_OF_BLOCK ? t->who & ~SEVERAL_OF_BLOCK : t->who / m->threads;
        who = t->who != SEVERAL_BLOCKS && block == m->block ? SEVERAL_OF_BLOCK | block : SEVERAL_BLOCKS;
    }
    t->launch = m->launch, t->who = who, t->epoch = m->epoch;
}

static inline void check(machine *m, mark *k, int how, uint64_t a, uint32_t who, int line) {
    if (how == LOAD) {
        if (conflicts(&k->wrote, m, who)) m->fault(m, RACE, "load after another thread's store", a, who, line);
        if (conflicts(&k->atomic, m, who)) m->fault(m, BESIDE_ATOMIC, "load beside atomics", a, who, line);
        note(&k->read, m, who);
    } else if (how == STORE) {
        if (conflicts(&k->wrote, m, who)) m->fault(m, RACE, "store after another thread's store", a, who, line);
        if (conflicts(&k->atomic, m, who)) m->fault(m, RACE, "store beside atomics", a, who, line);
        if (conflicts(&k->read, m, who)) m->fault(m, RACE, "store after another thread's load", a, who, line);
        note(&k->wrote, m, who);
    } else {
        if (conflicts(&k->wrote, m, who)) m->fault(m, RACE, "atomic after another thread's store", a, who, line);
        if (conflicts(&k->read, m, who)) m->fault(m, BESIDE_ATOMIC, "atomic after a load", a, who, line);
        note(&k->atomic, m, who);
    }
}

static inline int within(const allocation *g, uint64_t a, uint32_t bytes) {
    return a >= g->low && a + bytes <= g->high;
}

/* The allocation of an access; each instruction looks first where it looked last. */
static inline allocation *found(machine *m, uint32_t *last, uint64_t a, uint32_t bytes) {
    if (*last < m->count && within(&m->allocations[*last], a, bytes)) return &m->allocations[*last];
    uint32_t low = 0, high = m->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (m->allocations[middle].high <= a) low = middle + 1; else high = middle;
    }
    if (low < m->count && within(&m->allocations[low], a, bytes)) {
        *last = low;
        return &m->allocations[low];
    }
    return 0;
}

static inline int global(machine *m, uint32_t *last, uint64_t a, uint32_t bytes, int how, uint32_t thread, int line) {
    uint32_t who = m->block * m->threads + thread;
    *(how == LOAD ? &m->loaded : &m->stored) += bytes;
    allocation *g = found(m, last, a, bytes);
    if (!g) {
        m->fault(m, OUT_OF_BOUNDS, how == LOAD ? "load out of bounds" : "store out of bounds", a, who, line);
        return 0;
    }
    if (a % bytes) {
        m->fault(m, MISALIGNED, "misaligned access", a, who, line);
        return 0;
    }
    /* Narrower ones are the compiler's: of an integer that is cut it loads the lower half. */
    if (bytes > g->item) m->fault(m, WIDTH, "access wider than the array's items", a, who, line);
    if (!g->marks) m->make_marks(g);
    check(m, &g->marks[(a - g->low) / g->item], how, a, who, line);
    return 1;
}

static inline int shared(machine *m, uint64_t a, uint32_t bytes, int how, uint32_t thread, int line) {
    uint32_t who = m->block * m->threads + thread;
    if (a + bytes > m->shared_bytes) {
        m->fault(m, OUT_OF_BOUNDS, "shared memory out of bounds", a, who, line);
        return 0;
    }
    if (a % bytes) {
        m->fault(m, MISALIGNED, "misaligned access of shared memory", a, who, line);
        return 0;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        mark *k = &m->shared_marks[a + i];
        if (how != STORE && k->wrote.launch != m->launch && k->atomic.launch != m->launch)
            m->fault(m, UNWRITTEN, "load of shared memory that no thread wrote", a, who, line);
        check(m, k, how, a, who, line);
    }
    return 1;
}

static inline double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline uint64_t as_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

/* Of PTX: a number rather than NaN, and -0 below +0. */
static inline double least(double a, double b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

static inline double most(double a, double b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

/* Saturates as PTX does; NumPy does not, so it is reported. */
static inline int64_t whole(machine *m, double a, uint32_t thread, int line) {
    if (a >= -9223372036854775808.0 && a < 9223372036854775808.0) return (int64_t)a;
    m->fault(m, RANGE, "a float beyond all integers", as_bits(a), m->block * m->threads + thread, line);
    return isnan(a) || a < 0 ? INT64_MIN : INT64_MAX;
}

#ifdef COUNTED
#define STEP m->instructions++;
#else
#define STEP
#endif
#endif
