// SPDX-License-Identifier: GPL-2.0-or-later
// What holds at this moment: health and sources (status), who the CPUs are (cpu), figures (snapshot).

import { byId, el, replace, table } from './dom.js';
import { bytes, duration, instant, number, reasonText, unitText } from './format.js';

const STORM_RATE = 100, // of [Events] BreakRate= and BreakShare=, as shipped
    STORM_SHARE = 0.1;
const DEEPEST = (ids, from) => [...ids].reverse().find((id) => from[id] !== undefined && from[id] !== null);

// A number, or '-' that says why; both as one element.
export function value(v, unit, reason, rate) {
    if (v === null || v === undefined)
        return el('abbr', { class: 'missing', title: reasonText(reason), tabindex: 0 }, '-');
    const u = unitText(unit, rate);
    return el(
        'span',
        null,
        el('span', { class: 'value' }, number(v)),
        u ? el('span', { class: 'unit' }, ' ' + u) : null,
    );
}

// The tiles: [key, title, unit, value, reason, alarming]. Exported for tests; pure.
export function figures(snapshot) {
    const s = snapshot.system,
        why = s.reasons ?? {},
        seconds = (snapshot.interval_ms ?? 0) / 1000;
    const plain = (id) => [s[id] ?? null, s[id] === undefined ? 'absent' : why[id]];
    const perSecond = (v) => (typeof v === 'number' && seconds > 0 ? v / seconds : null);
    const deep = Object.entries(s.idle ?? {}).at(-1),
        w = s.wakeups ?? {};
    const core = DEEPEST(['c3', 'c6', 'c7'], s) ?? 'c6';
    const pkg = DEEPEST(['pc2', 'pc3', 'pc6', 'pc7', 'pc8', 'pc9', 'pc10'], s) ?? 'pc6';
    const rate = (v, id) => [perSecond(v), w.reasons?.[id] ?? 'absent'];
    return [
        ['node_watts', 'Power, packages and DRAM', 'W', ...plain('node_watts')],
        ['pkg_watts', 'Power, packages', 'W', ...plain('pkg_watts')],
        ['busy', 'Busy', '%', ...plain('busy')],
        ['bzy_mhz', 'Frequency while busy', 'MHz', ...plain('bzy_mhz')],
        [
            'idle_time',
            deep ? `${deep[0]} requested` : 'Idle requested',
            '%',
            deep?.[1].time ?? null,
            deep?.[1].reasons?.time ?? 'absent',
        ],
        [core, `CPU%${core} granted`, '%', ...plain(core)],
        [pkg, pkg === 'pc10' ? 'Pk%pc10 granted' : `Pkg%${pkg} granted`, '%', ...plain(pkg)],
        ['wakeups', 'Wakeups', '1', ...rate(w.total, 'total')],
        [
            'wakeups_break',
            w.method === 'bound' ? 'Break wakeups, at least' : 'Break wakeups',
            '1',
            ...rate(w.break, 'break'),
        ],
        ['irq', 'Interrupts', '1', perSecond(s.irq), why.irq ?? 'absent'],
        ['pkg_temp', 'Temperature, packages', 'C', ...plain('pkg_temp')],
    ];
}

// Some breaks are noise. A storm is what the daemon's own event takes for one: many, and a good part of all wakeups.
export function storm(snapshot) {
    const w = snapshot.system.wakeups ?? {},
        seconds = (snapshot.interval_ms ?? 0) / 1000;
    return seconds > 0 && w.break / seconds >= STORM_RATE && w.break >= STORM_SHARE * (w.total ?? 0);
}

export function showFigures(snapshot, utc) {
    replace(
        byId('figures'),
        figures(snapshot).map(([key, title, unit, v, reason]) => {
            const alarm = key === 'wakeups_break' && storm(snapshot);
            return el(
                'div',
                { class: alarm ? 'tile alarm' : 'tile', 'data-key': key },
                el('dt', null, title),
                el(
                    'dd',
                    null,
                    value(v, unit, reason, unit === '1'),
                    v === null ? el('small', { class: 'why' }, reason ?? '') : null,
                ),
            );
        }),
    );
    replace(byId('sampled'), `interval that ended ${instant(snapshot.end, utc)}`);
}

// ---- status ----

export function showStatus(status, utc) {
    byId('health').dataset.health = status.health;
    replace(byId('health'), status.health === 'ok' ? '\u2713 ok' : '\u26a0 ' + status.health);
    replace(byId('host'), status.host ?? '');
    document.title = `${status.health === 'ok' ? '' : '\u26a0 '}${status.host ?? 'cstated'} \u2013 cstated`;
    // Errata stand above with their advice, once who the CPUs are is known.
    const told = byId('erratum-alarm').children.length > 0;
    replace(
        byId('problems'),
        status.problems.filter((p) => !told || !p.startsWith('erratum ')).map((p) => el('li', null, p)),
    );
    replace(
        byId('notes'),
        status.notes.map((n) => el('li', null, n)),
    );
    replace(
        byId('sources'),
        table(
            'Sources',
            ['source', 'state', 'counters', 'what'],
            status.sources.map((s) => [
                s.name,
                el('span', { class: 'state state-' + s.state }, s.state),
                String(s.counters),
                s.hint ?? s.detail ?? '',
            ]),
        ),
    );
    replace(byId('self'), facts(selfFacts(status, utc)));
}

function selfFacts(status, utc) {
    const self = status.self,
        share = status.uptime_s > 0 ? (100 * self.cpu_seconds) / status.uptime_s : null;
    const list = [
        ['cstated', status.version],
        ['up', duration(status.uptime_s)],
        ['interval', duration(status.interval_ms / 1000)],
        ['wake policy', status.wake_policy ?? '-'],
        ['last sample', instant(status.last_sample, utc)],
        ['own CPU time', share === null ? '-' : `${number(share)} % of one CPU`],
        ['memory', bytes(self.rss_bytes)],
        ['time a sample takes', `${number(self.sample_us)} \u00b5s`],
        ['remote reads', number(self.remote_reads)],
        ['wakeups caused', number(self.wakeups_caused)],
        ['missed ticks', number(self.missed_ticks)],
        ['dropped frames', number(self.dropped_frames)],
    ];
    if (status.store) {
        list.push(['database', status.store.path], ['size', bytes(status.store.bytes + status.store.wal_bytes)]);
        for (const [tier, t] of Object.entries(status.store.tiers))
            list.push([`${tier} since`, instant(t.oldest, utc)]);
    }
    return list;
}

function facts(list) {
    return el(
        'dl',
        { class: 'facts' },
        list.map(([k, v]) => el('div', null, el('dt', null, k), el('dd', null, v))),
    );
}

// ---- cpu ----

const BAD = { unmitigated: 'bad', unknown: 'warn', advisory: 'warn' };

export function showCpu(cpu) {
    const alarms = cpu.cpus.flatMap((c) => c.errata).filter((e) => e.status === 'unmitigated');
    replace(
        byId('identity'),
        cpu.cpus.map((c) => identity(c)),
        facts(machineFacts(cpu)),
        idleSets(cpu.idle),
    );
    replace(
        byId('erratum-alarm'),
        [...new Map(alarms.map((e) => [e.id, e])).values()].map((e) =>
            el('li', null, el('strong', null, `erratum ${e.id}: UNMITIGATED. `), e.advice),
        ),
    );
}

function identity(c) {
    const hex = (n) => (n === null || n === undefined ? '-' : '0x' + n.toString(16));
    return el(
        'article',
        null,
        el('h3', null, c.brand || `${c.vendor} family ${c.family} model ${c.model}`),
        el(
            'p',
            null,
            [
                c.uarch ?? 'unknown microarchitecture',
                c.core_type,
                c.vendor,
                `family ${c.family}`,
                `model ${c.model} (${hex(c.model)})`,
                `stepping ${c.stepping}`,
                `microcode ${hex(c.microcode)}`,
                `${c.count} CPUs`,
                c.hypervisor ? `virtual machine${c.hypervisor_vendor ? ' of ' + c.hypervisor_vendor : ''}` : null,
            ]
                .filter((x) => x)
                .join(', '),
        ),
        table(
            'Errata',
            ['erratum', 'status', 'advice'],
            c.errata.map((e) => [
                e.id,
                el('span', { class: 'state ' + (BAD[e.status] ?? 'good') }, e.status),
                e.advice,
            ]),
        ),
    );
}

function machineFacts(cpu) {
    const t = cpu.topology,
        limit = cpu.pkg_cst?.limit;
    return [
        ['kernel', cpu.kernel ?? '-'],
        ['CPUs', t ? `${t.cpus} online (${t.online})${t.offline ? ', offline ' + t.offline : ''}` : '-'],
        ['cores', t ? `${t.cores} in ${t.packages.length} packages` : '-'],
        ['idle driver', cpu.idle?.driver || '-'],
        ['governor', cpu.idle?.governor || '-'],
        ['package C-state limit', limit === undefined || limit === null ? '-' : String(limit)],
    ];
}

function idleSets(idle) {
    return (idle?.sets ?? []).map((set) =>
        table(
            'Idle states',
            [
                'state',
                { text: 'exit latency', class: 'n' },
                { text: 'target residency', class: 'n' },
                'description',
            ],
            set.states.map((s) => [
                s.name,
                `${number(s.exit_latency_us)} \u00b5s`,
                `${number(s.target_residency_us)} \u00b5s`,
                (s.desc ?? '') + (s.disabled ? ' (disabled)' : ''),
            ]),
        ),
    );
}
