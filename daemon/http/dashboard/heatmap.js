// SPDX-License-Identifier: GPL-2.0-or-later
// Every CPU of the snapshot as one cell. Colours come from classes, so that the style sheet owns light, dark and print;
// a cell is touched only when its class changes, which keeps 512 CPUs at 1 Hz cheap.

import { byId, el, replace } from './dom.js';
import { number, reasonText, withUnit } from './format.js';

const LEVELS = 10;
// Lower bounds of the levels above 0.
const PERCENT = [5, 10, 20, 30, 50, 70, 80, 90, 95];
const RATE = [1, 3, 10, 30, 100, 300, 1000, 3000, 10000];

const MAPS = [
    { id: 'busy', title: 'Busy', unit: '%', bounds: PERCENT, ramp: 'heat' },
    { id: 'requested', title: 'Deepest idle state, requested', unit: '%', bounds: PERCENT, ramp: 'cold' },
    { id: 'granted', title: 'Core C6 and deeper, granted', unit: '%', bounds: PERCENT, ramp: 'cold' },
    { id: 'break', title: 'Break wakeups', unit: '/s', bounds: RATE, ramp: 'heat' },
];

const coreKey = (o) => `${o.package}/${o.die ?? ''}/${o.core}`;

// Per CPU: {cpu, package, die, core, values: {busy: [number or null, reason], ...}}. Pure.
export function cells(snapshot) {
    const seconds = (snapshot.interval_ms ?? 0) / 1000;
    const cores = new Map(snapshot.cores.map((c) => [coreKey(c), c]));
    return snapshot.cpus.map((c) => {
        const deep = Object.values(c.idle ?? {}).at(-1),
            w = c.wakeups ?? {};
        const breaks = typeof w.break === 'number' && seconds > 0 ? w.break / seconds : null;
        return {
            cpu: c.cpu,
            package: c.package,
            die: c.die ?? null,
            core: c.core,
            values: {
                busy: [c.busy ?? null, c.reasons?.busy ?? 'absent'],
                requested: [deep?.time ?? null, deep?.reasons?.time ?? 'absent'],
                granted: granted(cores.get(coreKey(c))),
                break: [breaks, w.reasons?.break ?? 'absent'],
            },
        };
    });
}

function granted(core) {
    const known = ['c6', 'c7'].filter((id) => typeof core?.[id] === 'number');
    if (known.length > 0) return [known.reduce((sum, id) => sum + core[id], 0), null];
    return [null, core?.reasons?.c6 ?? core?.reasons?.c7 ?? 'absent'];
}

export function level(v, bounds) {
    return v === null ? -1 : bounds.filter((b) => v >= b).length;
}

export class Heatmap {
    constructor(root) {
        this.root = root;
        this.shape = '';
        this.readout = byId('heat-readout');
    }

    show(snapshot) {
        this.data = cells(snapshot);
        const shape = this.data.map((c) => `${c.cpu}@${c.package}`).join();
        if (shape !== this.shape) this.build(shape);
        for (const map of this.maps) this.paint(map);
        if (this.pointed) this.tell(this.pointed);
    }

    build(shape) {
        this.shape = shape;
        this.root.dataset.size = this.data.length > 128 ? 'many' : 'few';
        this.maps = MAPS.map((m) => ({
            ...m,
            nodes: [],
            levels: [],
            note: el('p', { class: 'note', hidden: true }),
        }));
        replace(
            this.root,
            this.maps.map((m) => this.section(m)),
        );
    }

    section(map) {
        const packages = Map.groupBy
            ? [...Map.groupBy(this.data.keys(), (i) => this.packageOf(i))]
            : this.grouped();
        map.grid = el(
            'div',
            {
                class: `heat ${map.ramp}`,
                role: 'group',
                tabindex: 0,
                'aria-label': `${map.title} of each CPU; arrow keys move`,
                'data-map': map.id,
                on: {
                    keydown: (e) => this.key(map, e),
                    pointermove: (e) => this.point(e),
                    pointerleave: () => this.unpoint(),
                    pointerdown: (e) => this.point(e),
                },
            },
            packages.map(([name, list]) =>
                el(
                    'div',
                    { class: 'package' },
                    el('h4', null, name),
                    el(
                        'div',
                        { class: 'cells' },
                        list.map((i) => this.cell(map, i)),
                    ),
                ),
            ),
        );
        return el('section', null, el('h3', null, `${map.title} (${map.unit})`), map.grid, map.note, legend(map));
    }

    packageOf(i) {
        const c = this.data[i];
        return `package ${c.package}` + (c.die === null ? '' : ` die ${c.die}`);
    }

    grouped() {
        const found = new Map();
        this.data.forEach((_, i) => {
            const name = this.packageOf(i);
            found.set(name, [...(found.get(name) ?? []), i]);
        });
        return [...found];
    }

    cell(map, i) {
        map.nodes[i] = el('i', { class: 'cell', 'data-i': i });
        if (this.data.length <= 128) map.nodes[i].append(String(this.data[i].cpu));
        return map.nodes[i];
    }

    paint(map) {
        const reasons = new Set();
        let known = 0;
        this.data.forEach((c, i) => {
            const [v, reason] = c.values[map.id],
                l = level(v, map.bounds);
            if (l < 0) reasons.add(reason);
            else known++;
            if (map.levels[i] === l) return;
            map.levels[i] = l;
            map.nodes[i].className = l < 0 ? 'cell none' : `cell l${l}`;
        });
        map.note.hidden = known > 0;
        map.grid.hidden = known === 0;
        if (known === 0) replace(map.note, [...reasons].map(reasonText).join('; ') || 'no CPU');
    }

    tell(i) {
        const c = this.data[i];
        if (!c) return;
        const say = (id, unit) => {
            const [v, reason] = c.values[id];
            return v === null
                ? `- (${reasonText(reason)})`
                : unit === '/s'
                  ? withUnit(v, '1', true)
                  : withUnit(v, unit);
        };
        replace(
            this.readout,
            el('strong', null, `CPU ${c.cpu}`),
            `, ${this.packageOf(i)}, core ${c.core}: `,
            MAPS.map((m, k) => [
                k > 0 ? '; ' : '',
                m.title.toLowerCase(),
                ' ',
                el('b', { 'data-heat': m.id }, say(m.id, m.unit)),
            ]),
        );
    }

    point(event) {
        const i = event.target.dataset?.i;
        if (i !== undefined) this.mark(Number(i));
    }

    unpoint() {
        this.mark(undefined);
    }

    mark(i) {
        for (const m of this.maps) {
            m.nodes[this.pointed]?.removeAttribute('data-marked');
            m.nodes[i]?.setAttribute('data-marked', '');
        }
        this.pointed = i;
        if (i !== undefined) this.tell(i);
    }

    // Left and right go by one, up and down by a row as it is laid out now.
    key(map, event) {
        const n = this.data.length,
            at = this.pointed ?? -1;
        const move = {
            ArrowRight: 1,
            ArrowLeft: -1,
            ArrowDown: columns(map),
            ArrowUp: -columns(map),
            Home: -n,
            End: n,
        }[event.key];
        if (move === undefined) return;
        event.preventDefault();
        this.mark(Math.min(Math.max(at < 0 ? 0 : at + move, 0), n - 1));
    }
}

function columns(map) {
    const top = map.nodes[0].offsetTop;
    const next = map.nodes.findIndex((n) => n.offsetTop !== top);
    return next < 0 ? map.nodes.length : next;
}

function legend(map) {
    const from = (l) => (l === 0 ? `< ${number(map.bounds[0])}` : number(map.bounds[l - 1]));
    return el(
        'p',
        { class: `legend ${map.ramp}`, 'aria-hidden': 'true' },
        Array.from({ length: LEVELS }, (_, l) => el('span', null, el('i', { class: `cell l${l}` }), from(l))),
        el('span', null, el('i', { class: 'cell none' }), 'no value'),
    );
}
