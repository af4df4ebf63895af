// SPDX-License-Identifier: GPL-2.0-or-later
// Elements from data. Text goes in as text nodes alone: a label, a host or a CPU may be called anything.

// el('td', {class: 'n', title: 'x', on: {click: f}}, 'text', child, [more]): null children are left out.
export function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (name === 'on')
            for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
        else if (value === true) node.setAttribute(name, '');
        else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    add(node, children);
    return node;
}

function add(node, children) {
    for (const child of children) {
        if (Array.isArray(child)) add(node, child);
        else if (child !== null && child !== undefined && child !== false)
            node.append(child instanceof Node ? child : String(child));
    }
}

export function byId(id) {
    return document.getElementById(id);
}

export function replace(node, ...children) {
    node.replaceChildren();
    add(node, children);
}

// head: strings or {text, class, title}; rows: lists of cells, each a string, a node or null.
export function table(caption, head, rows, attributes) {
    return el(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
        el(
            'table',
            attributes,
            el('caption', { class: 'hidden' }, caption),
            el(
                'thead',
                null,
                el(
                    'tr',
                    null,
                    head.map((h) =>
                        typeof h === 'string'
                            ? el('th', { scope: 'col' }, h)
                            : el('th', { scope: 'col', class: h.class, title: h.title }, h.text),
                    ),
                ),
            ),
            el(
                'tbody',
                null,
                rows.map((cells) =>
                    el(
                        'tr',
                        null,
                        cells.map((c, i) => {
                            const numeric = head[i]?.class;
                            return el(i === 0 ? 'th' : 'td', { scope: i === 0 ? 'row' : null, class: numeric }, c);
                        }),
                    ),
                ),
            ),
        ),
    );
}
