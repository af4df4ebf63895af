// SPDX-License-Identifier: GPL-2.0-or-later
// Asking the daemon politely: one question at a time, none while it says it is busy, ever more seldom while it is away.

const TIMEOUT_MS = 30000,
    AWAY_MAX_MS = 30000,
    BUSY_MAX_MS = 60000;

export class ApiError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status; // 0: not reachable
    }
}

// Addresses are relative, so that the page also works behind a proxy's prefix.
export function address(route, params) {
    const p = new URLSearchParams();
    for (const [name, value] of Object.entries(params ?? {}))
        if (value !== null && value !== undefined && value !== '') p.set(name, value);
    const text = p.toString();
    return 'api/v1/' + route + (text ? '?' + text : '');
}

// How long to rest after the n-th failure in a row (from 1).
export function backoff(n, retryAfterS) {
    if (retryAfterS > 0) return Math.min(retryAfterS * 1000 * 2 ** (n - 1), BUSY_MAX_MS);
    return Math.min(1000 * 2 ** (n - 1), AWAY_MAX_MS);
}

export class Api {
    // onState({away: ms or 0, since, message}): the daemon cannot be reached, or can again.
    constructor(onState) {
        this.onState = onState;
        this.tail = Promise.resolve();
        this.failures = 0;
        this.restUntil = 0;
        this.awaySince = 0;
    }

    get resting() {
        return Math.max(0, this.restUntil - Date.now());
    }

    // JSON of a route; {ms, bytes} of the last reply stand in this.last.
    get(route, params) {
        const turn = this.tail.then(() => this.ask(address(route, params)));
        this.tail = turn.catch(() => {});
        return turn;
    }

    async ask(url) {
        if (this.resting > 0) throw new ApiError(503, 'resting');
        const began = performance.now();
        let response, text;
        try {
            response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), cache: 'no-store' });
            text = await response.text();
        } catch {
            this.away();
            throw new ApiError(0, 'daemon not reachable');
        }
        this.last = { ms: performance.now() - began, bytes: text.length };
        this.back();
        return this.judge(response, text);
    }

    judge(response, text) {
        let body = null;
        try {
            body = JSON.parse(text);
        } catch {
            throw new ApiError(response.status, 'the reply is no JSON');
        }
        if (response.ok) {
            this.failures = 0;
            return body;
        }
        if (response.status === 503) {
            this.failures++;
            this.restUntil = Date.now() + backoff(this.failures, Number(response.headers.get('Retry-After')) || 1);
        }
        throw new ApiError(response.status, body?.error?.message ?? `status ${response.status}`);
    }

    away() {
        this.failures++;
        this.restUntil = Date.now() + backoff(this.failures, 0);
        this.awaySince ||= Date.now();
        this.onState({ away: this.resting, since: this.awaySince });
    }

    back() {
        if (!this.awaySince) return;
        this.awaySince = 0;
        this.failures = 0;
        this.restUntil = 0;
        this.onState({ away: 0 });
    }
}
