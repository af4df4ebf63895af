// SPDX-License-Identifier: GPL-2.0-or-later
// What happened, and the windows that people named. All of these texts may come from strangers.

import { address } from './api.js';
import { byId, el, replace, table } from './dom.js';
import { duration, instant } from './format.js';

export function showEvents(reply, params, utc) {
    byId('events-json').href = address('events', params);
    const newest = [...reply.events].reverse();
    replace(
        byId('events'),
        newest.length === 0
            ? el('p', { class: 'note' }, 'Nothing happened in this window.')
            : table(
                  'Events',
                  ['time', 'kind', 'CPU', 'what'],
                  newest.map((e) => [
                      instant(e.time, utc),
                      e.kind,
                      e.cpu === null || e.cpu === undefined ? '' : String(e.cpu),
                      e.text,
                  ]),
              ),
        reply.truncated ? el('p', { class: 'note' }, 'There are more; the oldest ones are shown.') : null,
    );
}

function commandOf(meta) {
    if (meta === null || meta === undefined) return '';
    if (Array.isArray(meta.cmd)) return meta.cmd.join(' ');
    return JSON.stringify(meta);
}

// on: {show(start, end), side('a' or 'b', name)}
export function showLabels(reply, utc, on) {
    byId('labels-json').href = address('labels');
    replace(
        byId('labels'),
        reply.labels.length === 0
            ? el(
                  'p',
                  { class: 'note' },
                  'None yet: cstatectl run --label NAME -- COMMAND, or cstatectl mark NAME.',
              )
            : table(
                  'Labels',
                  ['label', 'from', 'length', 'of', 'use'],
                  reply.labels.map((l) => [
                      l.name,
                      instant(l.start, utc),
                      l.end === null || l.end === undefined ? 'open' : duration((l.end - l.start) / 1000),
                      commandOf(l.meta),
                      el(
                          'span',
                          { class: 'buttons' },
                          button('show', l, () => on.show(l.start, l.end ?? Date.now())),
                          button('as A', l, () => on.side('a', l.name)),
                          button('as B', l, () => on.side('b', l.name)),
                      ),
                  ]),
              ),
    );
}

function button(text, label, click) {
    return el('button', { type: 'button', 'aria-label': `${text}: ${label.name}`, on: { click } }, text);
}
