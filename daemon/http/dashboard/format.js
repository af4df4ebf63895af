// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers, times and reasons as people read them. Pure: knows no page.

export const MISSING = '-';
const THIN = '\u202f';

const REASONS = {
    first: 'there is no earlier sample to compare with yet',
    absent: 'this machine, or its kernel, does not give it',
    denied: 'it may not be read; the sources below say why',
    offline: 'the CPU is offline',
    reset: 'the counter was reset',
    backwards: 'the counter went backwards',
    gap: 'samples are missing',
    asleep: 'the core slept through; it is read when it wakes by itself',
    'out-of-range': 'the reading is outside of what is possible',
    vm: 'a virtual machine does not give it',
    'not-applicable': 'it means nothing on this machine',
    error: 'reading failed; the sources below say why',
};

export function reasonText(reason) {
    return reason ? `${reason}: ${REASONS[reason] ?? 'no value'}` : 'no value';
}

// The unit behind a number. rate: the number of a counter is one a second.
export function unitText(unit, rate) {
    if (unit === '1') return rate ? '/s' : '';
    return { C: '\u00b0C', us: '\u00b5s' }[unit] ?? unit ?? '';
}

// Three or four digits that count, thousands apart; null is '-', never 0.
export function number(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
    const size = Math.abs(value);
    const sign = value < 0 ? '\u2212' : '';
    if (size >= 1e15) return sign + size.toExponential(3);
    if (size !== 0 && size < 0.0005) return sign + size.toExponential(1);
    const text = size.toFixed(Number.isInteger(size) || size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
    const [whole, fraction] = text.split('.');
    const groups = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, THIN) : whole;
    return sign + groups + (fraction ? '.' + fraction : '');
}

export function withUnit(value, unit, rate) {
    const text = number(value),
        u = unitText(unit, rate);
    return text === MISSING || !u ? text : u === '/s' ? text + u : text + THIN + u;
}

// +1.2, as comparisons are read.
export function signed(value) {
    const text = number(value);
    return value > 0 && text !== MISSING ? '+' + text : text;
}

export function bytes(n) {
    if (n === null || n === undefined) return MISSING;
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
    return (i === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + THIN + units[i];
}

// 93784 s: "1 d 2 h"
export function duration(seconds) {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return MISSING;
    const parts = [
        ['d', 86400],
        ['h', 3600],
        ['min', 60],
        ['s', 1],
    ];
    if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
    const at = parts.findIndex(([, length]) => seconds >= length);
    const [unit, length] = parts[at],
        first = Math.floor(seconds / length);
    const next = parts[at + 1],
        rest = next ? Math.floor((seconds - first * length) / next[1]) : 0;
    return rest > 0 ? `${first} ${unit} ${rest} ${next[0]}` : `${first} ${unit}`;
}

const two = (n) => String(n).padStart(2, '0');

// Milliseconds as "2026-12-01 03:50:03Z", or in the browser's zone without the Z.
export function instant(ms, utc) {
    if (ms === null || ms === undefined || !Number.isFinite(ms)) return MISSING;
    const d = new Date(ms);
    if (Number.isNaN(d.getTime())) return MISSING;
    if (utc) return d.toISOString().slice(0, 19).replace('T', ' ') + 'Z';
    return (
        `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
        `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
    );
}

// What stands for an entity beside its metric: "package 0", "package 0 die 1", "core 3", "node".
export function entityText(e) {
    const parts = [];
    for (const kind of ['package', 'die', 'module', 'core', 'cpu'])
        if (e[kind] !== null && e[kind] !== undefined) parts.push(`${kind} ${e[kind]}`);
    return parts.join(' ') || 'node';
}
