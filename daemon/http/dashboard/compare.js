// SPDX-License-Identifier: GPL-2.0-or-later
// A window in figures (summary), and two windows or labels side by side (compare).

import { address } from './api.js';
import { byId, el, replace, table } from './dom.js';
import { instant, number, reasonText, signed, unitText } from './format.js';
import { compareArgument } from './timeframe.js';

const n = (text, title) => ({ text, class: 'n', title });

function rowName(r) {
    return el(
        'span',
        null,
        r.metric,
        r.state ? ` ${r.state}` : '',
        r.method ? el('small', null, ` (${r.method})`) : null,
    );
}

// How much of it there was in all: the energy, the time, the count.
function totalOf(r) {
    if (r.joules !== undefined && r.joules !== null) return `${number(r.joules)} J`;
    if (r.seconds !== undefined && r.seconds !== null) return `${number(r.seconds)} s`;
    return r.count !== undefined && r.count !== null ? number(r.count) : '';
}

function cell(v, reason) {
    return v === null || v === undefined
        ? el('abbr', { class: 'missing', title: reasonText(reason) }, '-')
        : number(v);
}

export function showSummary(reply, params) {
    byId('summary-json').href = address('summary', params);
    replace(
        byId('summary'),
        reply.rows.length === 0
            ? el('p', { class: 'note' }, 'No samples in this window.')
            : table(
                  'The window in figures',
                  ['metric', 'unit', n('mean'), n('\u00b1 sd'), n('min'), n('max'), n('total'), n('n')],
                  reply.rows.map((r) => [
                      rowName(r),
                      unitText(r.unit, true),
                      cell(r.mean, r.reason),
                      cell(r.stddev, r.reason ?? 'first'),
                      cell(r.min, r.reason),
                      cell(r.max, r.reason),
                      totalOf(r),
                      number(r.n),
                  ]),
              ),
    );
}

// ---- compare ----

function side(s) {
    return s
        ? [
              cell(s.mean, s.reason),
              s.stddev_percent === null || s.stddev_percent === undefined
                  ? ''
                  : `\u00b1${number(s.stddev_percent)} %`,
          ]
        : [cell(null, 'gap'), ''];
}

function sideText(name, s, utc) {
    const what = s.label ?? `${instant(s.start, utc)} to ${instant(s.end, utc)}`;
    return `${name}: ${what} (${s.windows} ${s.windows === 1 ? 'window' : 'windows'}, ${number(s.samples)} samples${
        s.per_sample ? ', spread per sample' : ', spread of the means'
    })`;
}

// How much a change is worth a look; the sign and the number say it too, the weight only helps the eye.
function changeCell(r) {
    if (r.change === null || r.change === undefined) return cell(null, 'not-applicable');
    const text = `${signed(r.change)} ${r.change_unit}`,
        large = Math.abs(r.change) >= (r.change_unit === 'pp' ? 1 : 5);
    return large ? el('strong', null, text) : text;
}

export function showCompare(reply, params, utc) {
    byId('compare-json').href = address('compare', params);
    byId('compare-json').hidden = false;
    replace(
        byId('comparison'),
        el('p', null, sideText('A', reply.a, utc), el('br'), sideText('B', reply.b, utc)),
        reply.warnings.map((w) => el('p', { class: 'warning' }, '\u26a0 ', w)),
        reply.rows.length === 0
            ? el('p', { class: 'note' }, 'Nothing was measured in both.')
            : table(
                  'A and B',
                  ['metric', 'unit', n('A'), n('\u00b1%sd'), n('change'), n('B'), n('\u00b1%sd')],
                  reply.rows.map((r) => [
                      rowName(r),
                      unitText(r.unit, true),
                      ...side(r.a),
                      changeCell(r),
                      ...side(r.b),
                  ]),
              ),
    );
}

export function showCompareError(error) {
    replace(byId('comparison'), el('p', { class: 'warning', role: 'alert' }, error.message));
}

export class CompareForm {
    constructor(onCompare) {
        this.a = byId('compare-a');
        this.b = byId('compare-b');
        byId('compare-form').addEventListener('submit', (e) => {
            e.preventDefault();
            onCompare(this.a.value.trim(), this.b.value.trim());
        });
    }

    labels(names) {
        replace(
            byId('label-names'),
            names.map((name) => el('option', { value: name })),
        );
    }

    // The window that is shown, and as much time before it.
    suggest(frame) {
        this.a.placeholder = compareArgument(2 * frame.start - frame.end, frame.start);
        this.b.placeholder = compareArgument(frame.start, frame.end);
    }

    arguments() {
        return { a: this.a.value.trim() || this.a.placeholder, b: this.b.value.trim() || this.b.placeholder };
    }
}
