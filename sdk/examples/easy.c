/* EASY backfilling as a policy module, in C.
 *
 *   clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -Wl,-z,stack-size=65536 -o easy.wasm easy.c
 */
typedef unsigned int u32;

struct header {
    double now_s;
    u32 machine_procs, free_procs, waiting_count, releases_count;
    u32 waiting_offset, releases_offset, answer_offset, bytes;
};

struct waiting {
    double submit_s, estimate_s;
    u32 procs, priority, job_class, arrival;
};

struct release {
    double at_s;
    u32 procs, arrival;
};

#define EXPORT(name) __attribute__((export_name(name)))
#define PAGE 65536u

extern unsigned char __heap_base;

/* Room behind the data and the stack. */
EXPORT("powersweep_v1_input") u32 input(u32 bytes) {
    u32 from = ((u32)(unsigned long)&__heap_base + 7u) & ~7u;
    u32 pages = (from + bytes + PAGE - 1u) / PAGE;
    u32 have = __builtin_wasm_memory_size(0);
    if (pages > have) __builtin_wasm_memory_grow(0, pages - have);
    return from;
}

EXPORT("powersweep_v1_schedule") u32 schedule(u32 address) {
    unsigned char *base = (unsigned char *)(unsigned long)address;
    const struct header *pass = (const struct header *)base;
    const struct waiting *waiting = (const struct waiting *)(base + pass->waiting_offset);
    const struct release *releases = (const struct release *)(base + pass->releases_offset);
    u32 *answer = (u32 *)(base + pass->answer_offset);
    u32 free = pass->free_procs, count = pass->waiting_count, starts = 0, head = 0;

    /* Jobs start in order until one does not fit. */
    for (; head < count && waiting[head].procs <= free; head++) {
        free -= waiting[head].procs;
        answer[starts++] = head;
    }
    if (head == count) return starts;

    /* The reservation of the next one: one instant after the other at which procs become free by the estimated ends. The
     * releases are in order, the jobs that have just started are not. */
    double shadow_s = -__builtin_inf();
    u32 available = free, need = waiting[head].procs, at = 0;
    while (available < need) {
        double next_s = at < pass->releases_count ? releases[at].at_s : __builtin_inf();
        for (u32 job = 0; job < head; job++) {
            double end_s = pass->now_s + waiting[job].estimate_s;
            if (end_s > shadow_s && end_s < next_s) next_s = end_s;
        }
        if (next_s == __builtin_inf()) __builtin_trap();
        for (; at < pass->releases_count && releases[at].at_s == next_s; at++) available += releases[at].procs;
        for (u32 job = 0; job < head; job++)
            if (pass->now_s + waiting[job].estimate_s == next_s) available += waiting[job].procs;
        shadow_s = next_s;
    }
    u32 extra = available - need;

    /* A job behind it starts if it fits and either ends by then or leaves the reservation its procs. */
    for (u32 job = head + 1; job < count; job++) {
        u32 procs = waiting[job].procs;
        int late = pass->now_s + waiting[job].estimate_s > shadow_s;
        if (procs > free || (late && procs > extra)) continue;
        if (late) extra -= procs;
        free -= procs;
        answer[starts++] = job;
    }
    return starts;
}
