// SPDX-License-Identifier: GPL-2.0-or-later
// Lines and stacks over time by dygraphs. The only file that knows it; plot-none.js is its twin.

import { number } from './format.js';
import { lines } from './series.js';

export const available = true;

const plots = new Set(); // they share the crosshair

// A classic script: it must not run under the rules of modules.
export function load() {
    return new Promise((resolve, reject) => {
        const script = document.createElement('script');
        script.src = 'dashboard/dygraph.min.js';
        script.onload = () => {
            // Its legend writes HTML and inline styles; ours does neither.
            const D = window.Dygraph;
            D.PLUGINS = D.PLUGINS.filter((p) => p !== D.Plugins.Legend && p !== D.Plugins.ChartLabels);
            resolve();
        };
        script.onerror = () => reject(new Error('dygraph.min.js cannot be loaded'));
        document.head.append(script);
    });
}

function theme() {
    const style = getComputedStyle(document.documentElement);
    return {
        axisLineColor: style.getPropertyValue('--line').trim(),
        gridLineColor: style.getPropertyValue('--grid').trim(),
        mark: style.getPropertyValue('--mark').trim(),
    };
}

export class Plot {
    // spec: {stacked, range, second: metric on the right axis}; on: {hover(i or null), zoom(start, end)}
    constructor(node, spec, on) {
        this.node = node;
        this.spec = spec;
        this.on = on;
        this.graph = null;
        this.shape = '';
        this.marks = [];
    }

    show(data, styles, frame, utc, marks) {
        this.marks = marks;
        this.times = data.times;
        const shape = JSON.stringify([styles, utc]);
        const options = { file: lines(data), dateWindow: [frame.start, frame.end] };
        if (this.graph && shape === this.shape) {
            this.graph.updateOptions(options);
            return;
        }
        this.graph?.destroy();
        this.shape = shape;
        this.graph = new window.Dygraph(this.node, options.file, {
            ...this.options(data, styles, utc),
            ...options,
            file: undefined,
        });
        plots.add(this);
    }

    options(data, styles, utc) {
        const series = {};
        data.series.forEach((s, i) => {
            const style = styles[i];
            series['s' + i] = {
                color: style.color,
                strokeWidth: style.width ?? 1.5,
                strokePattern: style.dash ?? null,
                fillGraph: Boolean(style.fill),
                axis: s.metric === this.spec.second ? 'y2' : 'y1',
            };
        });
        const axis = {
            axisLabelWidth: 46,
            pixelsPerLabel: 28,
            axisLabelFormatter: (v) => number(Number(v.toPrecision(6))),
        };
        return {
            // dygraphs writes some of what it is given as HTML: it gets no names
            labels: ['t', ...data.series.map((_, i) => 's' + i)],
            series,
            labelsUTC: utc,
            stackedGraph: Boolean(this.spec.stacked),
            stackedGraphNaNFill: 'none',
            fillAlpha: this.spec.stacked ? 0.55 : 0.3,
            valueRange: this.spec.range ?? null,
            includeZero: true,
            connectSeparatedPoints: false,
            drawGapEdgePoints: true,
            pointSize: 1.5,
            axisLabelFontSize: 11,
            highlightCircleSize: 3,
            xRangePad: 0,
            animatedZooms: false,
            rightGap: 4,
            axes: { x: { pixelsPerLabel: 70 }, y: axis, y2: { ...axis, drawGrid: false, independentTicks: true } },
            ...theme(),
            highlightCallback: (event, x, points, row) => this.hover(row),
            unhighlightCallback: () => this.hover(null),
            zoomCallback: (start, end) => this.on.zoom(start, end),
            underlayCallback: (canvas, area, graph) => this.underlay(canvas, area, graph),
        };
    }

    // Events as thin lines behind the data.
    underlay(canvas, area, graph) {
        canvas.fillStyle = theme().mark;
        for (const t of this.marks) {
            const x = graph.toDomXCoord(t);
            if (x >= area.x && x <= area.x + area.w) canvas.fillRect(Math.round(x), area.y, 1, area.h);
        }
    }

    // All plots show the same moment.
    hover(row) {
        const t = row === null ? null : this.times[row];
        for (const p of plots) {
            const i = t === null ? -1 : p.times.indexOf(t);
            if (p !== this && p.graph) {
                if (i >= 0) p.graph.setSelection(i);
                else p.graph.clearSelection();
            }
            p.on.hover(i >= 0 ? i : null);
        }
    }

    setVisible(i, visible) {
        this.graph?.setVisibility(i, visible);
    }

    restyle() {
        this.graph?.updateOptions(theme());
        this.graph?.resize();
    }
}
