// SPDX-License-Identifier: GPL-2.0-or-later
// Which time is looked at, how finely, and how that stands in the page's address. Pure: knows no page.

const MIN = 60,
    HOUR = 3600,
    DAY = 86400;

// step: so that a series has 140 to 250 points and a reply stays below 100 KB
export const WINDOWS = [
    { id: '15m', name: '15 min', seconds: 15 * MIN, step: 5 },
    { id: '1h', name: '1 h', seconds: HOUR, step: 15 },
    { id: '6h', name: '6 h', seconds: 6 * HOUR, step: 2 * MIN },
    { id: '24h', name: '24 h', seconds: DAY, step: 10 * MIN },
    { id: '7d', name: '7 d', seconds: 7 * DAY, step: HOUR },
    { id: '30d', name: '30 d', seconds: 30 * DAY, step: 3 * HOUR },
];
const STEPS = [
    1,
    2,
    5,
    10,
    15,
    30,
    MIN,
    2 * MIN,
    5 * MIN,
    10 * MIN,
    15 * MIN,
    30 * MIN,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    7 * DAY,
    30 * DAY,
];
const POINTS = 240;
const EARLIEST_MS = 1e11; // below it the API reads seconds

// A window of its own: {id: 'custom', start, end}, in milliseconds.
export function custom(start, end) {
    start = Math.round(Math.max(start, EARLIEST_MS));
    end = Math.round(Math.max(end, start + 1000));
    return { id: 'custom', start, end };
}

export function byName(id) {
    return WINDOWS.find((w) => w.id === id);
}

// The coarsest that is needed, never finer than the daemon samples. In seconds.
export function stepOf(seconds, intervalMs) {
    const least = Math.max(seconds / POINTS, (intervalMs ?? 1000) / 1000);
    return STEPS.find((s) => s >= least) ?? Math.ceil(least / (30 * DAY)) * 30 * DAY;
}

// The bounds to ask for. A named window ends now, on the daemon's clock, at a whole step.
export function resolve(w, nowMs, intervalMs) {
    if (w.id === 'custom')
        return { start: w.start, end: w.end, step: stepOf((w.end - w.start) / 1000, intervalMs), live: false };
    const step = Math.max(w.step, stepOf(Math.min(w.seconds, w.step), intervalMs));
    const end = Math.ceil(nowMs / (step * 1000)) * step * 1000;
    return { start: end - w.seconds * 1000, end, step, live: true };
}

// How often charts are worth asking for again, in milliseconds; 0: not.
export function refreshOf(frame) {
    return frame.live ? Math.max(10, Math.min(frame.step, 5 * MIN)) * 1000 : 0;
}

// "#window=1h&clock=utc&a=old&b=new" and back; what makes no sense is the default.
export function parseHash(hash) {
    const p = new URLSearchParams(hash.replace(/^#/, ''));
    const start = Number(p.get('start')),
        end = Number(p.get('end'));
    let w = byName(p.get('window')) ?? WINDOWS[0];
    if (p.has('start') && Number.isFinite(start) && Number.isFinite(end) && start >= EARLIEST_MS && end > start)
        w = custom(start, end);
    return { window: w, utc: p.get('clock') !== 'local', a: p.get('a') ?? '', b: p.get('b') ?? '' };
}

export function formatHash(state) {
    const p = new URLSearchParams();
    if (state.window.id === 'custom') {
        p.set('start', state.window.start);
        p.set('end', state.window.end);
    } else p.set('window', state.window.id);
    if (!state.utc) p.set('clock', 'local');
    if (state.a) p.set('a', state.a);
    if (state.b) p.set('b', state.b);
    return '#' + p.toString();
}

// The value of <input type=datetime-local step=1>, which has no zone, and back. NaN where it is none.
export function toInput(ms, utc) {
    const d = new Date(utc ? ms : ms - new Date(ms).getTimezoneOffset() * 60000);
    return d.toISOString().slice(0, 19);
}

export function fromInput(text, utc) {
    return text ? new Date(text + (utc ? 'Z' : '')).getTime() : NaN;
}

// A window as /api/v1/compare takes it.
export function compareArgument(start, end) {
    return `${new Date(start).toISOString()}..${new Date(end).toISOString()}`;
}
