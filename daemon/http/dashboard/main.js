// SPDX-License-Identifier: GPL-2.0-or-later
// Wiring: what is asked when, and what the address and the controls say. Polls only while somebody looks.

import { Api } from './api.js';
import { buildPanels } from './charts.js';
import { CompareForm, showCompare, showCompareError, showSummary } from './compare.js';
import { byId, el, replace } from './dom.js';
import { showEvents, showLabels } from './events.js';
import { duration, instant } from './format.js';
import { Heatmap } from './heatmap.js';
import { showCpu, showFigures, showStatus } from './now.js';
import { load } from './plot.js';
import { WINDOWS, custom, formatHash, fromInput, parseHash, refreshOf, resolve, toInput } from './timeframe.js';

const STATUS_MS = 10000,
    LABELS_MS = 30000,
    TURN_MS = 250,
    MARKS_MAX = 200;
const MARKED = /^(break|deep|erratum|hotplug|suspend|gap|source|boot|epoch)/;

const state = parseHash(location.hash);
const due = { snapshot: 0, status: 0, cpu: 0, labels: 0, history: 0 };
const api = new Api(showReach);
const heatmap = new Heatmap(byId('heatmaps'));
const compareForm = new CompareForm(startCompare);
let panels = [],
    paused = false,
    busy = false,
    intervalMs = 1000,
    daemonNow = 0,
    historyOf = 0,
    last = {};

// ---- what is asked ----

async function snapshot() {
    const began = performance.now(),
        s = await api.get('snapshot');
    last.snapshot = s;
    daemonNow = s.end;
    showFigures(s, state.utc);
    heatmap.show(s);
    // A slow line or a large machine: spend a tenth of the time on it, not all.
    return Math.max(1000, intervalMs, 10 * (performance.now() - began));
}

async function status() {
    const s = await api.get('status');
    last.status = s;
    intervalMs = s.interval_ms || intervalMs;
    if (!last.snapshot) daemonNow = s.last_sample ?? 0;
    showStatus(s, state.utc);
    return STATUS_MS;
}

async function cpu() {
    showCpu(await api.get('cpu'));
    return Infinity; // again once the daemon has been away
}

async function labels() {
    last.labels = await api.get('labels');
    drawLabels();
    return LABELS_MS;
}

function drawLabels() {
    if (!last.labels) return;
    showLabels(last.labels, state.utc, { show: (a, b) => choose(custom(a, b)), side: setSide });
    compareForm.labels([...new Set(last.labels.labels.map((l) => l.name))]);
}

// Events first, as the charts mark them. A newer choice of window ends an older one's round.
async function history() {
    const mine = ++historyOf,
        frame = resolve(state.window, daemonNow || Date.now(), intervalMs);
    const bounds = { start: frame.start, end: frame.end };
    const stale = () => mine !== historyOf;
    compareForm.suggest(frame);
    replace(
        byId('window-text'),
        `${instant(frame.start, state.utc)} to ${instant(frame.end, state.utc)}, one value every ` +
            duration(frame.step),
    );
    const events = await api.get('events', bounds);
    if (stale()) return 0;
    showEvents(events, bounds, state.utc);
    const marks = events.events
        .filter((e) => MARKED.test(e.kind))
        .slice(-MARKS_MAX)
        .map((e) => e.time);
    for (const p of panels) {
        try {
            await p.refresh(api, frame, { utc: state.utc, marks });
        } catch (e) {
            p.fail(e);
            if (e.status === 0 || e.status === 503) throw e;
        }
        if (stale()) return 0;
    }
    const summary = await api.get('summary', bounds);
    if (!stale()) showSummary(summary, bounds);
    return refreshOf(frame) || Infinity;
}

const jobs = { cpu, status, snapshot, labels, history };

// One turn: everything that is due, one after the other. What failed is due again when the daemon has rested.
async function turn() {
    if (busy || document.hidden || api.resting > 0) return;
    busy = true;
    try {
        for (const name of Object.keys(jobs)) if (!(await run(name))) break;
    } finally {
        busy = false;
    }
}

// False where it failed.
async function run(name) {
    const asked = due[name];
    if (Date.now() < asked || (paused && asked !== 0)) return true;
    try {
        const wait = await jobs[name]();
        // Set anew meanwhile (a button): it stays due.
        if (due[name] === asked) due[name] = wait === 0 ? 0 : Date.now() + wait;
        if (name !== 'history') say('');
        return true;
    } catch (e) {
        due[name] = Date.now() + Math.max(1000, api.resting);
        // What cannot be reached says so elsewhere; a fault of ours says so here and in the console.
        if (e.status !== 0) say(`${name}: ${e.message}`);
        if (e.status === undefined) console.error(e);
        return false;
    }
}

function say(text) {
    const node = byId('trouble');
    if (node.textContent !== text) node.textContent = text;
}

// ---- what is said when it does not answer ----

let wasAway = false;
function showReach({ away, since }) {
    document.body.classList.toggle('away', away > 0);
    replace(
        byId('reach'),
        away > 0
            ? `The daemon is not reachable since ${instant(since, false)} of this clock; ` +
                  `what stands here is old. Trying again in ${Math.max(1, Math.round(away / 1000))} s.`
            : '',
    );
    if (!away && wasAway) due.cpu = due.history = due.labels = 0;
    wasAway = away > 0;
}

// ---- controls ----

function choose(w) {
    state.window = w;
    location.hash = formatHash(state); // an entry of the browser's history: "back" undoes a zoom
}

function applyHash() {
    const before = state.utc;
    Object.assign(state, parseHash(location.hash));
    drawControls();
    due.history = 0;
    if (before !== state.utc) due.status = due.snapshot = due.labels = 0;
    historyOf++;
}

function drawControls() {
    for (const b of byId('windows').querySelectorAll('button'))
        b.setAttribute('aria-pressed', b.dataset.id === state.window.id ? 'true' : 'false');
    byId('custom').hidden = state.window.id !== 'custom';
    byId('clock').value = state.utc ? 'utc' : 'local';
    compareForm.a.value = state.a;
    compareForm.b.value = state.b;
    fillCustom();
}

function fillCustom() {
    const frame = resolve(state.window, daemonNow || Date.now(), intervalMs);
    byId('custom-start').value = toInput(frame.start, state.utc);
    byId('custom-end').value = toInput(frame.end, state.utc);
}

function setSide(side, name) {
    compareForm[side].value = name;
    byId('compare').scrollIntoView({ block: 'nearest' });
    if (compareForm.a.value && compareForm.b.value) startCompare(compareForm.a.value, compareForm.b.value);
}

async function startCompare(a, b) {
    Object.assign(state, { a, b });
    window.history.replaceState(null, '', formatHash(state));
    const params = compareForm.arguments();
    try {
        showCompare(await api.get('compare', params), params, state.utc);
    } catch (e) {
        showCompareError(e);
    }
}

function buildControls() {
    const button = (id, name, click) =>
        el('button', { type: 'button', 'data-id': id, 'aria-pressed': 'false', on: { click } }, name);
    replace(
        byId('windows'),
        WINDOWS.map((w) => button(w.id, w.name, () => choose(w))),
        button('custom', 'custom', () => {
            const frame = resolve(state.window, daemonNow || Date.now(), intervalMs);
            choose(custom(frame.start, frame.end));
        }),
    );
    byId('custom').addEventListener('submit', (e) => {
        e.preventDefault();
        const start = fromInput(byId('custom-start').value, state.utc),
            end = fromInput(byId('custom-end').value, state.utc);
        if (end > start) choose(custom(start, end));
        else say('a window ends after it begins');
    });
    byId('clock').addEventListener('change', (e) => {
        state.utc = e.target.value === 'utc';
        location.hash = formatHash(state);
    });
    byId('pause').addEventListener('click', (e) => {
        paused = !paused;
        e.currentTarget.setAttribute('aria-pressed', paused ? 'true' : 'false');
    });
    window.addEventListener('hashchange', applyHash);
    const restyle = () => panels.forEach((p) => p.plot.restyle());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
    for (const e of ['beforeprint', 'afterprint']) window.addEventListener(e, restyle);
    document.addEventListener('visibilitychange', turn);
}

async function main() {
    buildControls();
    drawControls();
    await load();
    panels = buildPanels((start, end) => choose(custom(start, end)));
    setInterval(turn, TURN_MS);
    turn();
    if (state.a && state.b) startCompare(state.a, state.b);
}

main();
