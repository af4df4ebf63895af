// SPDX-License-Identifier: GPL-2.0-or-later
// The panels over time: what each asks for, its legend, its table.

import { address } from './api.js';
import { byId, el, replace, table } from './dom.js';
import { entityText, instant, number, reasonText, unitText, withUnit } from './format.js';
import { Plot, available } from './plot.js';
import { extent, fromReply } from './series.js';

const PACKAGE_STATES = 'pc2,pc3,pc6,pc7,pc8,pc9,pc10';
export const PANELS = [
    { id: 'power', title: 'Power', unit: 'W', query: { metric: 'node_watts,pkg_watts,ram_watts,sys_watts' } },
    {
        id: 'wakeups',
        title: 'Wakeups by cause',
        unit: '/s',
        query: { metric: 'wakeups,wakeups_interrupt,wakeups_store,wakeups_break', scope: 'node' },
    },
    {
        id: 'requested',
        title: 'Idle states requested by the kernel',
        unit: '% of CPU time',
        stacked: true,
        range: [0, 100.5],
        query: { metric: 'idle_time', scope: 'node' },
    },
    {
        id: 'granted',
        title: 'Core idle states granted by the hardware',
        unit: '% of time',
        stacked: true,
        range: [0, 100.5],
        query: { metric: 'busy,c1,c3,c6,c7', scope: 'node' },
    },
    {
        id: 'package',
        title: 'Package idle states granted by the hardware',
        unit: '% of time',
        stacked: true,
        range: [0, 100.5],
        query: { metric: PACKAGE_STATES, scope: 'node' },
    },
    {
        id: 'speed',
        title: 'Busy and frequency',
        unit: '% left, MHz right',
        second: 'bzy_mhz',
        query: { metric: 'busy,bzy_mhz', scope: 'node' },
    },
];

const NAMES = {
    node_watts: 'packages and DRAM',
    pkg_watts: 'package',
    ram_watts: 'DRAM',
    sys_watts: 'platform',
    wakeups: 'all',
    wakeups_interrupt: 'interrupt',
    wakeups_store: 'store',
    wakeups_break: 'break',
    busy: 'Busy%',
    bzy_mhz: 'Bzy_MHz',
    c1: 'CPU%c1',
    c3: 'CPU%c3',
    c6: 'CPU%c6',
    c7: 'CPU%c7',
    pc10: 'Pk%pc10',
};

// Okabe and Ito's colours, which people tell apart however they see colours; dashes help where lines cross.
const COLORS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8a8a00', '#7f7f7f'];
const BREAK = '#d55e00';

export function nameOf(s) {
    const name =
        s.metric === 'idle_time'
            ? (s.state ?? 'idle')
            : (NAMES[s.metric] ?? (/^pc\d+$/.test(s.metric) ? 'Pkg%' + s.metric : s.metric));
    const where = entityText(s),
        bound = s.method === 'bound' ? ', at least' : '';
    if (s.metric === 'pkg_watts') return where + bound;
    return (where === 'node' ? name : `${name} ${where}`) + bound;
}

// Idle states from light (shallow) to dark (deep); busy and break in the one colour that means heat.
export function styleOf(s, i, all, stacked) {
    if (s.metric === 'wakeups_break') return { color: BREAK, width: 3, fill: true };
    if (s.metric === 'wakeups') return { color: '#7f7f7f', dash: [5, 3] };
    if (s.metric === 'bzy_mhz') return { color: COLORS[1], dash: [4, 4], width: 2 };
    if (stacked) {
        if (s.metric === 'busy') return { color: BREAK, fill: true };
        const states = all.filter((x) => x.metric !== 'busy');
        const depth = states.length > 1 ? states.indexOf(s) / (states.length - 1) : 1;
        const hue = 180 + 40 * depth,
            saturation = 45 + 30 * depth,
            light = 76 - 32 * depth;
        return { color: `hsl(${Math.round(hue)}, ${Math.round(saturation)}%, ${Math.round(light)}%)`, fill: true };
    }
    return {
        color: COLORS[i % COLORS.length],
        dash: i >= COLORS.length ? [6, 2] : null,
        width: s.metric === 'node_watts' ? 2.5 : 1.5,
    };
}

export class Panel {
    constructor(spec, onZoom) {
        this.spec = spec;
        this.hidden = new Set();
        this.plotNode = el('div', {
            class: 'plot',
            role: 'img',
            'aria-label': `${spec.title}, chart; the table below has the figures`,
        });
        this.legend = el('div', { class: 'series' });
        this.note = el('p', { class: 'note', role: 'status' });
        this.tableNode = el('div');
        this.json = el('a', { class: 'json', href: '#' }, 'JSON');
        this.details = el('details', { open: !available }, el('summary', null, 'Table'), this.tableNode);
        this.root = el(
            'section',
            { class: 'panel', 'data-panel': spec.id },
            el(
                'div',
                { class: 'head' },
                el('h3', null, spec.title, el('span', { class: 'unit' }, ` (${spec.unit})`)),
                this.json,
            ),
            available ? this.plotNode : null,
            this.legend,
            this.note,
            this.details,
        );
        this.plot = new Plot(this.plotNode, spec, { hover: (i) => this.tell(i), zoom: onZoom });
    }

    params(frame) {
        return {
            ...this.spec.query,
            start: frame.start,
            end: frame.end,
            step: frame.step + 's',
            format: 'columns',
        };
    }

    async refresh(api, frame, context) {
        const params = this.params(frame);
        this.json.href = address('query', { ...params, format: 'rows' });
        this.data = fromReply(await api.get('query', params), frame);
        this.show(frame, context);
    }

    show(frame, { utc, marks }) {
        const { series, absent } = this.data;
        this.utc = utc;
        this.styles = series.map((s, i) => styleOf(s, i, series, this.spec.stacked));
        const empty = series.length === 0;
        this.plotNode.hidden = this.details.hidden = empty;
        this.note.textContent = empty ? this.emptyText(absent) : this.noteText(absent);
        if (!empty) this.plot.show(this.data, this.styles, frame, utc, marks);
        this.buildLegend();
        this.buildTable();
    }

    emptyText(absent) {
        return absent.length > 0
            ? `Not measured here: ${absent.map((id) => NAMES[id] ?? id).join(', ')}. ` +
                  'The sources below say why.'
            : 'No samples in this window.';
    }

    noteText(absent) {
        const parts = [];
        // Of the many package and core states a machine has a few; only causes and watts are worth a word.
        const missing = absent.filter((id) => /^(wakeups|node_watts|pkg_watts|ram_watts|busy|bzy_mhz)/.test(id));
        if (missing.length > 0)
            parts.push(`not measured here: ${missing.map((id) => NAMES[id] ?? id).join(', ')}`);
        if (this.data.gaps > 0)
            parts.push(`${number(this.data.samples)} of ${number(this.data.expected)} samples`);
        return parts.join('; ');
    }

    buildLegend() {
        this.values = [];
        replace(
            this.legend,
            this.data.series.map((s, i) => {
                const swatch = el('i', { class: 'swatch' });
                swatch.style.backgroundColor = this.styles[i].color;
                this.values[i] = el('output', { 'data-series': nameOf(s) });
                return el(
                    'button',
                    {
                        type: 'button',
                        'aria-pressed': this.hidden.has(i) ? 'false' : 'true',
                        title: 'show or hide',
                        on: { click: (e) => this.toggle(i, e.currentTarget) },
                    },
                    swatch,
                    nameOf(s),
                    ' ',
                    this.values[i],
                );
            }),
        );
        if (available) this.hidden.forEach((i) => this.plot.setVisible(i, false));
        this.tell(null);
    }

    toggle(i, button) {
        const show = this.hidden.has(i);
        if (show) this.hidden.delete(i);
        else this.hidden.add(i);
        button.setAttribute('aria-pressed', show ? 'true' : 'false');
        this.plot.setVisible(i, show);
    }

    // Values at one moment, or the last ones.
    tell(row) {
        this.data?.series.forEach((s, i) => {
            const e = row === null ? extent(s) : null;
            const v = row === null ? e.last : s.values[row],
                reason = row === null ? e.reason : s.reasons[row];
            this.values[i].textContent = withUnit(v, s.unit, true);
            this.values[i].title =
                v === null ? reasonText(reason) : row === null ? 'last' : instant(this.data.times[row], this.utc);
        });
    }

    buildTable() {
        const n = (text) => ({ text, class: 'n' });
        replace(
            this.tableNode,
            table(
                `${this.spec.title}: buckets of the window`,
                [
                    'series',
                    'unit',
                    n('last'),
                    n('lowest'),
                    n('highest'),
                    { ...n('empty'), title: 'buckets without a value' },
                ],
                this.data.series.map((s) => {
                    const e = extent(s),
                        cell = (v) =>
                            v === null
                                ? el('abbr', { class: 'missing', title: reasonText(e.reason) }, '-')
                                : number(v);
                    return [
                        nameOf(s),
                        unitText(s.unit, true),
                        cell(e.last),
                        cell(e.min),
                        cell(e.max),
                        String(e.missing),
                    ];
                }),
            ),
        );
    }

    fail(error) {
        this.note.textContent = error.message;
    }
}

export function buildPanels(onZoom) {
    const panels = PANELS.map((spec) => new Panel(spec, onZoom));
    replace(
        byId('panels'),
        panels.map((p) => p.root),
    );
    return panels;
}
