// SPDX-License-Identifier: GPL-2.0-or-later
// From a reply of /api/v1/query (format=columns) to series over one grid of times. Pure: knows no page.

// A row's number holds for the bucket that begins at its time. Buckets without a row are null with the reason "gap", so
// that a line breaks there and does not bridge it.
export function fromReply(reply, frame) {
    const at = Object.fromEntries(reply.columns.map((name, i) => [name, i]));
    const step = reply.step_ms > 0 ? reply.step_ms : frame.step * 1000;
    const times = grid(frame, step),
        index = new Map(times.map((t, i) => [t, i]));
    const found = new Map();
    for (const row of reply.values) {
        const key = ['metric', 'state', 'package', 'die', 'module', 'core', 'cpu']
            .map((k) => row[at[k]])
            .join('|');
        let s = found.get(key);
        if (!s) {
            s = blank(row, at, reply, times.length);
            found.set(key, s);
        }
        const i = index.get(Math.floor(row[at.time] / step) * step);
        if (i === undefined) continue;
        s.values[i] = row[at.mean];
        s.reasons[i] = row[at.mean] === null ? (row[at.reason] ?? 'error') : null;
        if (row[at.method]) s.method = row[at.method];
    }
    return {
        times,
        step,
        series: [...found.values()],
        absent: reply.absent ?? [],
        samples: reply.samples,
        expected: reply.expected,
        gaps: reply.gaps,
        tier: reply.tier,
    };
}

function blank(row, at, reply, n) {
    const s = {
        metric: row[at.metric],
        state: row[at.state],
        unit: reply.unit[row[at.metric]] ?? '',
        method: null,
        values: new Array(n).fill(null),
        reasons: new Array(n).fill('gap'),
    };
    for (const k of ['package', 'die', 'module', 'core', 'cpu']) s[k] = row[at[k]];
    return s;
}

// Starts of the buckets that touch the window; they are aligned to UTC, as the daemon's are.
export function grid(frame, step) {
    const times = [];
    for (let t = Math.floor(frame.start / step) * step; t < frame.end; t += step) times.push(t);
    return times;
}

// Last, lowest and highest of the buckets. No mean: a ratio's is not that of its buckets (the summary has it).
export function extent(s) {
    let last = null,
        reason = null,
        min = null,
        max = null,
        missing = 0;
    for (let i = 0; i < s.values.length; i++) {
        const v = s.values[i];
        if (v === null) {
            missing++;
            if (s.reasons[i] !== 'gap') reason = s.reasons[i];
            continue;
        }
        last = v;
        min = min === null || v < min ? v : min;
        max = max === null || v > max ? v : max;
    }
    return { last, min, max, missing, reason: reason ?? 'gap' };
}

// Order of idle states is the machine's, from shallow to deep, as the reply has it; what is stacked starts shallow.
export function lines(data) {
    return data.times.map((t, i) => [new Date(t), ...data.series.map((s) => s.values[i])]);
}
