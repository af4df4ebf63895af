// SPDX-License-Identifier: GPL-2.0-or-later
// What the dashboard's pure functions must answer. One expression: a function of the modules that returns the failures.
// Run by check-dashboard.py under node, and by the browser test inside the page itself.
async ({ api, charts, format, heatmap, now, series, timeframe }) => {
    const failures = [];
    const is = (what, got, want) => {
        const a = JSON.stringify(got),
            b = JSON.stringify(want);
        if (a !== b) failures.push(`${what}: ${a} instead of ${b}`);
    };
    const plain = (text) => text.replaceAll('\u202f', ' ').replaceAll('\u2212', '-');

    // ---- numbers ----
    is('null is no 0', format.number(null), '-');
    is('undefined is no 0', format.number(undefined), '-');
    is('not finite', [format.number(NaN), format.number(Infinity)], ['-', '-']);
    is('0 is a number', format.number(0), '0');
    for (const [v, text] of [
        [95, '95'],
        [95.5, '95.50'],
        [180.04, '180.0'],
        [1234.5, '1235'],
        [12804.4, '12 804'],
        [0.01, '0.010'],
        [0.0001, '1.0e-4'],
        [-0.0001, '-1.0e-4'],
        [-0.25, '-0.250'],
        [-1500000, '-1 500 000'],
        [1e18, '1.000e+18'],
    ])
        is(`number ${v}`, plain(format.number(v)), text);
    is(
        'with unit',
        [
            format.withUnit(1.5, 'W'),
            format.withUnit(null, 'W'),
            format.withUnit(7, '1', true),
            format.withUnit(7, '1'),
        ].map(plain),
        ['1.50 W', '-', '7/s', '7'],
    );
    is('degrees', format.unitText('C'), '\u00b0C');
    is('signed', [format.signed(1), format.signed(-1), format.signed(0), format.signed(null)].map(plain), [
        '+1',
        '-1',
        '0',
        '-',
    ]);
    is(
        'bytes',
        [0, 1023, 1024, 340000, 5e12, null].map((n) => plain(format.bytes(n))),
        ['0 B', '1023 B', '1.0 KiB', '332 KiB', '4.5 TiB', '-'],
    );
    is('duration', [0.25, 59, 61, 3600, 93784, null].map(format.duration), [
        '250 ms',
        '59 s',
        '1 min 1 s',
        '1 h',
        '1 d 2 h',
        '-',
    ]);
    is('instant', format.instant(1796097477352, true), '2026-12-01 03:57:57Z');
    is(
        'no instant',
        [null, undefined, NaN, 1e20].map((t) => format.instant(t, true)),
        ['-', '-', '-', '-'],
    );
    is('local instant', format.instant(0, false).length, 19);
    is(
        'every reason is explained',
        [
            'first',
            'absent',
            'denied',
            'offline',
            'reset',
            'backwards',
            'gap',
            'asleep',
            'out-of-range',
            'vm',
            'not-applicable',
            'error',
        ].filter((r) => format.reasonText(r).endsWith('no value')),
        [],
    );
    is('an unknown reason', format.reasonText('new'), 'new: no value');
    is(
        'entities',
        [format.entityText({ package: 0, die: 1 }), format.entityText({ package: null })],
        ['package 0 die 1', 'node'],
    );

    // ---- windows ----
    const at = 1796097477352;
    for (const w of timeframe.WINDOWS) {
        const f = timeframe.resolve(w, at, 1000),
            points = (f.end - f.start) / 1000 / f.step;
        is(`${w.id} has 140 to 250 points`, points >= 140 && points <= 250, true);
        is(
            `${w.id} ends now, at a step`,
            f.end >= at && f.end < at + f.step * 1000 && f.end % (f.step * 1000) === 0,
            true,
        );
    }
    is('no finer than the interval', timeframe.resolve(timeframe.byName('15m'), at, 60000).step, 60);
    is(
        'steps of custom windows',
        [10, 3600, 86400, 86400 * 30, 86400 * 3000].map((s) => timeframe.stepOf(s, 100)),
        [1, 15, 600, 10800, 30 * 86400],
    );
    is(
        'a step has few points',
        [1, 61, 12345, 1e6, 3e8].every((s) => s / timeframe.stepOf(s, 1000) <= 240),
        true,
    );
    is(
        'refresh',
        [
            timeframe.refreshOf({ live: true, step: 5 }),
            timeframe.refreshOf({ live: true, step: 10800 }),
            timeframe.refreshOf({ live: false, step: 5 }),
        ],
        [10000, 300000, 0],
    );
    for (const hash of ['#window=24h', '#start=1796097000000&end=1796097477352&clock=local&a=old&b=%3Cimg%3E'])
        is(`address ${hash}`, timeframe.formatHash(timeframe.parseHash(hash)), hash);
    for (const hash of [
        '',
        '#',
        '#window=9y',
        '#start=5&end=4',
        '#start=NaN&end=1e999',
        '#start=1796097000000',
        '#%%%',
        '#end=1796097000000',
    ])
        is(`nonsense ${hash}`, timeframe.parseHash(hash).window.id, '15m');
    is('a custom window is not empty', timeframe.custom(2e12, 1e12).end > 2e12, true);
    is(
        'inputs',
        [timeframe.toInput(at, true), timeframe.fromInput('2026-12-01T03:57:57', true)],
        ['2026-12-01T03:57:57', 1796097477000],
    );
    is('inputs, local', timeframe.fromInput(timeframe.toInput(1796097477000, false), false), 1796097477000);
    is('no input', [timeframe.fromInput('', true), timeframe.fromInput('x', true)].map(Number.isNaN), [
        true,
        true,
    ]);
    is('compare', timeframe.compareArgument(0, 1000), '1970-01-01T00:00:00.000Z..1970-01-01T00:00:01.000Z');

    // ---- series ----
    const columns = [
        'time',
        'metric',
        'scope',
        'package',
        'die',
        'module',
        'core',
        'cpu',
        'state',
        'mean',
        'method',
        'reason',
    ];
    const row = (t, metric, pkg, state, mean, method, reason) => [
        t,
        metric,
        'x',
        pkg,
        null,
        null,
        null,
        null,
        state,
        mean,
        method,
        reason,
    ];
    const frame = { start: 10500, end: 30000, step: 5 };
    const data = series.fromReply(
        {
            columns,
            step_ms: 5000,
            unit: { busy: '%', pkg_watts: 'W' },
            absent: ['c7'],
            samples: 3,
            expected: 4,
            gaps: 1,
            values: [
                row(10500, 'pkg_watts', 0, null, 40, null, null),
                row(15000, 'pkg_watts', 0, null, null, 'x', 'denied'),
                row(25000, 'pkg_watts', 0, null, 0, null, null),
                row(25000, 'pkg_watts', 1, null, 7, null, null),
                row(99000, 'pkg_watts', 1, null, 8, null, null),
            ],
        },
        frame,
    );
    is('grid', data.times, [10000, 15000, 20000, 25000]);
    is('values; a 0 is kept, a hole is null', data.series[0].values, [40, null, null, 0]);
    is('reasons', data.series[0].reasons, [null, 'denied', 'gap', null]);
    is(
        'entities apart',
        data.series.map((s) => [s.package, s.values[3]]),
        [
            [0, 0],
            [1, 7],
        ],
    );
    is('method', data.series[0].method, 'x');
    is('extent', series.extent(data.series[0]), { last: 0, min: 0, max: 40, missing: 2, reason: 'denied' });
    is('empty extent', series.extent({ values: [null], reasons: ['gap'] }), {
        last: null,
        min: null,
        max: null,
        missing: 1,
        reason: 'gap',
    });
    is(
        'lines',
        series.lines(data).map((l) => l.slice(1)),
        [
            [40, null],
            [null, null],
            [null, null],
            [0, 7],
        ],
    );

    // ---- figures of a snapshot ----
    const snapshot = {
        interval_ms: 2000,
        system: {
            busy: 1.5,
            node_watts: null,
            irq: 10,
            reasons: { node_watts: 'denied' },
            c6: 95,
            idle: { POLL: { time: 0 }, C6: { time: null, reasons: { time: 'first' } } },
            wakeups: { total: 8, break: 4, method: 'bound', reasons: { interrupt: 'absent' } },
        },
        cores: [
            { package: 0, core: 0, c6: 90, c7: 5 },
            { package: 1, core: 0, c6: null, reasons: { c6: 'asleep' } },
        ],
        cpus: [
            {
                cpu: 0,
                package: 0,
                core: 0,
                busy: 2,
                idle: { POLL: { time: 0 }, C6: { time: 97 } },
                wakeups: { break: 4 },
            },
            {
                cpu: 9,
                package: 1,
                core: 0,
                busy: null,
                reasons: { busy: 'offline' },
                wakeups: { break: null, reasons: { break: 'vm' } },
            },
        ],
    };
    const tiles = Object.fromEntries(
        now.figures(snapshot).map(([key, , , v, reason]) => [key, v === null ? reason : v]),
    );
    is(
        'tiles',
        [
            tiles.busy,
            tiles.node_watts,
            tiles.pkg_watts,
            tiles.idle_time,
            tiles.wakeups,
            tiles.wakeups_break,
            tiles.irq,
            tiles.c6,
        ],
        [1.5, 'denied', 'absent', 'first', 4, 2, 5, 95],
    );
    is(
        'a break tile of an interval without length',
        now.figures({ ...snapshot, interval_ms: null }).find(([key]) => key === 'wakeups_break')[3],
        null,
    );
    const breaks = (n, total) => now.storm({ interval_ms: 2000, system: { wakeups: { break: n, total } } });
    is(
        'a storm',
        [breaks(400, 4000), breaks(400, 4001), breaks(199, 200), breaks(null, 9), breaks(0, 0)],
        [true, false, false, false, false],
    );
    is(
        'cells',
        heatmap.cells(snapshot).map((c) => [c.cpu, c.values]),
        [
            [0, { busy: [2, 'absent'], requested: [97, 'absent'], granted: [95, null], break: [2, 'absent'] }],
            [
                9,
                {
                    busy: [null, 'offline'],
                    requested: [null, 'absent'],
                    granted: [null, 'asleep'],
                    break: [null, 'vm'],
                },
            ],
        ],
    );
    is(
        'levels',
        [null, 0, 4.99, 5, 95, 100].map((v) => heatmap.level(v, [5, 50, 95])),
        [-1, 0, 0, 1, 3, 3],
    );
    is(
        'names',
        [
            charts.nameOf({ metric: 'idle_time', state: 'C6' }),
            charts.nameOf({ metric: 'pkg_watts', package: 1 }),
            charts.nameOf({ metric: 'wakeups_break', method: 'bound' }),
            charts.nameOf({ metric: 'pc6' }),
        ],
        ['C6', 'package 1', 'break, at least', 'Pkg%pc6'],
    );
    const names = new Set(charts.PANELS.flatMap((p) => p.query.metric.split(',')));
    is('every panel asks something', names.size > 15, true);

    // ---- asking ----
    is(
        'address',
        api.address('query', { metric: 'a,b', start: 5, label: '', x: null, name: '<&' }),
        'api/v1/query?metric=a%2Cb&start=5&name=%3C%26',
    );
    is(
        'rests when away',
        [1, 2, 3, 9].map((k) => api.backoff(k, 0)),
        [1000, 2000, 4000, 30000],
    );
    is(
        'rests as told when busy',
        [1, 2, 9].map((k) => api.backoff(k, 5)),
        [5000, 10000, 60000],
    );
    const fetchWas = globalThis.fetch,
        said = [];
    const reply = (status, text, after) => ({
        ok: status === 200,
        status,
        text: async () => text,
        headers: { get: () => after },
    });
    const asked = [];
    let next;
    globalThis.fetch = async (url) => {
        asked.push(url);
        if (next instanceof Error) throw next;
        return next;
    };
    const failure = async (a, route) => {
        try {
            return await a.get(route);
        } catch (e) {
            return [e.status, e.message];
        }
    };
    let a = new api.Api((s) => said.push(s.away > 0));
    next = reply(200, '{"x":1}');
    is('a reply', await failure(a, 'status'), { x: 1 });
    next = reply(400, '{"error":{"message":"no <b>","param":null}}');
    is('a refusal', await failure(a, 'query'), [400, 'no <b>']);
    is('a refusal is no reason to rest', a.resting, 0);
    next = reply(200, '<html>');
    is('no JSON', (await failure(a, 'query'))[1], 'the reply is no JSON');
    next = reply(503, '{"error":{"message":"busy"}}', '7');
    is('busy', await failure(a, 'query'), [503, 'busy']);
    is('rests for Retry-After', a.resting > 6000 && a.resting <= 7000, true);
    const before = asked.length;
    is('asks nothing while it rests', [await failure(a, 'status'), asked.length - before], [[503, 'resting'], 0]);
    a = new api.Api((s) => said.push(s.away > 0));
    next = new TypeError('network');
    is('away', await failure(a, 'status'), [0, 'daemon not reachable']);
    a.restUntil = 0;
    next = reply(200, '{}');
    is('back', [await failure(a, 'status'), said], [{}, [true, false]]);
    globalThis.fetch = fetchWas;
    return failures;
};
