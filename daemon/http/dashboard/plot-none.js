// SPDX-License-Identifier: GPL-2.0-or-later
// Twin of plot-dygraphs.js for a build without dygraphs: the tables of the panels stand open instead.

export const available = false;

export function load() {
    return Promise.resolve();
}

export class Plot {
    show() {}
    setVisible() {}
    restyle() {}
}
