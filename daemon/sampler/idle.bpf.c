/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idle entries, residency and causes of wakeups, counted in the kernel. No event leaves it: every CPU owns a slot of
 * an mmap'able array that the sampler reads as memory, without a system call. The programs look at their arguments and
 * the clock only, never into kernel structures, so one object fits every kernel with BTF; each is loaded only where
 * its tracepoint exists.
 *
 * The test_* programs are the same bodies behind BPF_PROG_TEST_RUN, which refuses tp_btf programs: state or target CPU
 * and time come as arguments.
 */

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "idle-classify.h"
#include "idle-local.h"

#define CPUS_MAX 8192
#define PWR_EVENT_EXIT ((__u32) -1)

char LICENSE[] SEC("license") = "GPL";

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, CPUS_MAX); /* set to the possible CPUs before loading */
        __type(key, __u32);
        __type(value, struct idle_trace_slot);
} slots SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, CPUS_MAX);
        __type(key, __u32);
        __type(value, struct idle_trace_stores);
} stores SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, CPUS_MAX);
        __type(key, __u32);
        __type(value, struct idle_local_slot);
} local_slots SEC(".maps");

/* By package: the interval it has been read in. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, CPUS_MAX);
        __type(key, __u32);
        __type(value, __u32);
} local_packages SEC(".maps");

/* Perf events of a CPU: IDLE_LOCAL_COLUMNS places each. */
struct {
        __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
        __uint(max_entries, CPUS_MAX * IDLE_LOCAL_COLUMNS);
        __type(key, __u32);
        __type(value, __u32);
} local_events SEC(".maps");

/* A kernel whose tracing programs may not read events never sees that code: the verifier drops it as dead. */
const volatile __u32 with_local = 1;

/* Set once everything is attached: attaching itself sends interrupts. */
volatile __u32 recording = 0;

/* The interval, counted by user space: a CPU with another local_done has not read its counters in it. 0: none asked. */
volatile __u32 local_due = 0;

#define barrier() asm volatile("" ::: "memory") /* the machines with such PMUs keep stores in order */

/*
 * The masks say which columns there are. An event that is another CPU's (a core's events are opened on one thread, and
 * older kernels let no other one read them) is refused by the kernel and stays out of `got`.
 */
static __always_inline void local_read_columns(struct idle_local_slot *l, __u32 cpu, __u32 want) {
#pragma unroll
        for (__u32 i = 0; i < IDLE_LOCAL_COLUMNS; i++) {
                struct bpf_perf_event_value v;

                if (!(want >> i & 1))
                        continue;
                if (bpf_perf_event_read_value(&local_events, cpu * IDLE_LOCAL_COLUMNS + i, &v, sizeof(v)) != 0)
                        continue;
                if (!l->got)
                        l->running = v.running;
                l->values[i] = v.counter;
                l->got |= 1u << i;
        }
}

/*
 * The kernel brings an event's count up to date without a lock: two CPUs that read one at the same time may add the
 * same piece twice, or lose one, for good. So who is not alone leaves it to the other. Whoever comes later sees both
 * additions, hence never do two go in; two that come at once may both stay out. (An atomic with a result would ask for
 * a kernel of 5.12.)
 */
static __always_inline int local_enter(__u32 *readers) {
        (void) __sync_fetch_and_add(readers, 1);
        barrier();
        return *(volatile __u32 *) readers == 1;
}

static __always_inline void local_leave(__u32 *readers) {
        barrier();
        (void) __sync_fetch_and_add(readers, -1);
}

static __always_inline void local_read(struct idle_trace_slot *s, __u32 cpu, __u32 due, __u64 now) {
        struct idle_local_slot *l = bpf_map_lookup_elem(&local_slots, &cpu);
        struct idle_local_slot *core, *package;
        __u32 core_id, package_id, want, *done;

        if (!l)
                return;
        s->local_done = due;
        core_id = l->core;
        package_id = l->package;
        want = l->own;
        core = bpf_map_lookup_elem(&local_slots, &core_id);
        package = bpf_map_lookup_elem(&local_slots, &package_id);
        done = bpf_map_lookup_elem(&local_packages, &package_id);
        if (!core || !package || !done)
                return;
        if (local_enter(&core->core_readers))
                want |= l->core_columns;
        if (local_enter(&package->package_readers) && *done != due)
                want |= l->package_columns;
        l->seq++;
        barrier();
        l->got = 0;
        l->ns = now;
        local_read_columns(l, cpu, want);
        if (l->got & l->package_columns)
                *done = due;
        barrier();
        l->seq++;
        local_leave(&package->package_readers);
        local_leave(&core->core_readers);
}

static __always_inline int body_idle(__u32 state, __u64 now) {
        __u32 cpu = bpf_get_smp_processor_id();
        struct idle_trace_slot *s = bpf_map_lookup_elem(&slots, &cpu);
        struct idle_trace_stores *w = bpf_map_lookup_elem(&stores, &cpu);

        if (!s || !w)
                return 0;
        if (state == PWR_EVENT_EXIT) {
                idle_classify_exit(s, w, now);
                return 0;
        }
        idle_classify_enter(s, w, state, now);
        if (with_local && s->local_done != local_due)
                local_read(s, cpu, local_due, now);
        return 0;
}

static __always_inline int body_switch(__u64 now) {
        __u32 cpu = bpf_get_smp_processor_id();
        struct idle_trace_slot *s = bpf_map_lookup_elem(&slots, &cpu);
        struct idle_trace_stores *w;

        if (!s || (s->n_events && !(s->flags & IDLE_PENDING)))
                return 0;
        w = bpf_map_lookup_elem(&stores, &cpu);
        if (w)
                idle_classify_switch(s, w, now ? now : bpf_ktime_get_ns());
        return 0;
}

static __always_inline int body_interrupt(__u64 now) {
        __u32 cpu = bpf_get_smp_processor_id();
        struct idle_trace_slot *s = bpf_map_lookup_elem(&slots, &cpu);
        struct idle_trace_stores *w;

        /* Busy CPUs, and all but the first interrupt of a sleep, end here: the clock is not even read. */
        if (!s || (!s->sleep_start && !(s->flags & IDLE_PENDING)) || (s->flags & IDLE_IRQ_INSIDE))
                return 0;
        w = bpf_map_lookup_elem(&stores, &cpu);
        if (w)
                idle_classify_interrupt(s, w, now ? now : bpf_ktime_get_ns());
        return 0;
}

static __always_inline int body_store(__u32 cpu, __u64 now) {
        struct idle_trace_stores *w = bpf_map_lookup_elem(&stores, &cpu);

        if (w)
                idle_classify_store(w, now);
        return 0;
}

SEC("tp_btf/cpu_idle")
int BPF_PROG(on_cpu_idle, unsigned int state) {
        return recording ? body_idle(state, bpf_ktime_get_ns()) : 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch) {
        return recording ? body_switch(0) : 0;
}

SEC("tp_btf/sched_wake_idle_without_ipi")
int BPF_PROG(on_wake_idle, int cpu) {
        return recording ? body_store((__u32) cpu, bpf_ktime_get_ns()) : 0;
}

#define ON_INTERRUPT(name) \
        SEC("tp_btf/" #name) \
        int BPF_PROG(on_##name) { \
                return recording ? body_interrupt(0) : 0; \
        }

ON_INTERRUPT(irq_handler_entry)
ON_INTERRUPT(nmi_handler)
ON_INTERRUPT(local_timer_entry)
ON_INTERRUPT(reschedule_entry)
ON_INTERRUPT(call_function_entry)
ON_INTERRUPT(call_function_single_entry)
ON_INTERRUPT(irq_work_entry)
ON_INTERRUPT(x86_platform_ipi_entry)
ON_INTERRUPT(thermal_apic_entry)
ON_INTERRUPT(threshold_apic_entry)
ON_INTERRUPT(deferred_error_apic_entry)
ON_INTERRUPT(error_apic_entry)
ON_INTERRUPT(spurious_apic_entry)

/* args: {state, now}, {now}, {now}, {cpu, now} */
SEC("raw_tp")
int test_idle(struct bpf_raw_tracepoint_args *ctx) {
        return body_idle((__u32) ctx->args[0], ctx->args[1]);
}

SEC("raw_tp")
int test_switch(struct bpf_raw_tracepoint_args *ctx) {
        return body_switch(ctx->args[0]);
}

SEC("raw_tp")
int test_interrupt(struct bpf_raw_tracepoint_args *ctx) {
        return body_interrupt(ctx->args[0]);
}

SEC("raw_tp")
int test_store(struct bpf_raw_tracepoint_args *ctx) {
        return body_store((__u32) ctx->args[0], ctx->args[1]);
}
