/** What a run has used in each hour, from its reports; and the sums over runs and over parts of the list. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  OVERVIEW_HOURS,
  OVERVIEW_MODELS_MAX,
  OVERVIEW_NAMES_MAX,
  OVERVIEW_RATE_MS_MAX,
} from "../../../../src/limits.ts";
import {
  hasSummary,
  historyAfter,
  hourOf,
  readRow,
  rowText,
  sum,
  type History,
  type Row,
} from "../../../../src/log/overview/history.ts";
import { addOverview, addPast, addRun, noOverview } from "../../../../src/log/overview/overview.ts";

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 10, 21, 13, 0);

type Figures = {
  usd?: number;
  calls?: number;
  models?: object;
  failures?: object;
  at?: number | null;
  pending?: number;
};

const summary = ({ usd = 0, calls = 0, models = {}, failures = {}, at = null, pending = 0 }: Figures, name = "run") =>
  JSON.stringify({
    id: "run_1",
    name,
    budget: { usd: { spent: usd } },
    in_flight: 0,
    stats: { total_queries: calls, pending_queries: pending },
    metrics: { attempts: calls, success_rate: null, failures },
    last_call_at: at === null ? null : new Date(at).toISOString(),
    spend_by_model: models,
  });

const rowOf = (text: string): Row => {
  const row = readRow(text);
  if (row === null) throw new Error(`no row: ${text}`);
  return row;
};

/** The row of a run that reports these, each at its time. */
function reported(reports: readonly (Figures & { atMs: number })[], name?: string): { text: string; atMs: number } {
  let known: { text: string; atMs: number } | null = null;
  for (const { atMs, ...figures } of reports) {
    const text = summary(figures, name);
    const history: History = historyAfter(known === null ? null : rowOf(known.text), rowOf(text).reported, {
      knownMs: known?.atMs ?? atMs,
      atMs,
    });
    known = { text: rowText(text, history), atMs };
  }
  if (known === null) throw new Error("it reports nothing");
  return known;
}

describe("the history of a run", () => {
  it("has what lies between two reports in the hour of the last call", () => {
    const { text } = reported([
      { atMs: START_MS, usd: 0 },
      { atMs: START_MS + 10_000, usd: 0.25, calls: 3, models: { "up/a": 0.25 }, at: START_MS + 9_000 },
      { atMs: START_MS + HOUR_MS, usd: 0.75, calls: 5, models: { "up/a": 0.5, "up/b": 0.25 }, at: START_MS + 20_000 },
      {
        atMs: START_MS + HOUR_MS + 1,
        usd: 1,
        calls: 6,
        models: { "up/a": 0.75, "up/b": 0.25 },
        at: START_MS + HOUR_MS,
      },
    ]);
    const first = {
      nanoUsd: 750_000_000,
      calls: 5,
      models: { "up/a": 500_000_000, "up/b": 250_000_000 },
      failures: {},
    };
    const second = { nanoUsd: 250_000_000, calls: 1, models: { "up/a": 250_000_000 }, failures: {} };
    const hour = hourOf(START_MS);
    expect(rowOf(text).history.hours).toEqual({ [hour]: first, [hour + 1]: second });
  });

  it("counts each failure once, by its code", () => {
    const { text } = reported([
      { atMs: START_MS, failures: { upstream_error: 2 } },
      { atMs: START_MS + 1, failures: { upstream_error: 2, budget_exhausted: 1 } },
    ]);
    const [use] = Object.values(rowOf(text).history.hours);
    expect(use?.failures).toEqual({ upstream_error: 2, budget_exhausted: 1 });
  });

  it(`keeps ${OVERVIEW_HOURS} hours`, () => {
    const hours = Array.from({ length: OVERVIEW_HOURS + 5 }, (_, at) => ({
      atMs: START_MS + at * HOUR_MS,
      usd: at + 1,
      at: START_MS + at * HOUR_MS,
    }));
    expect(Object.keys(rowOf(reported(hours).text).history.hours)).toHaveLength(OVERVIEW_HOURS);
  });

  it("counts models beyond its bound together", () => {
    const models = Object.fromEntries(Array.from({ length: OVERVIEW_MODELS_MAX + 3 }, (_, at) => [`up/${at}`, 1]));
    const { text } = reported([{ atMs: START_MS, usd: OVERVIEW_MODELS_MAX + 3, models }]);
    const [use] = Object.values(rowOf(text).history.hours);
    expect(Object.keys(use?.models ?? {})).toHaveLength(OVERVIEW_MODELS_MAX + 1);
    expect(sum(use?.models ?? {})).toBe((OVERVIEW_MODELS_MAX + 3) * 1e9);
  });

  it("is read from a row of an earlier version as empty, and does not count again what that had", () => {
    const earlier = summary({ usd: 3, calls: 9 });
    expect(rowOf(earlier).history).toEqual({ hours: {}, rate: null });
    const times = { knownMs: START_MS, atMs: START_MS + 1 };
    const next = historyAfter(rowOf(earlier), rowOf(summary({ usd: 3.5, calls: 10 })).reported, times);
    expect(Object.values(next.hours)).toMatchObject([{ nanoUsd: 500_000_000, calls: 1 }]);
  });

  it("leaves the summary in its row as it is, for readers of earlier versions", () => {
    const text = summary({ usd: 1 });
    const row = rowText(text, { hours: {}, rate: null });
    expect(JSON.parse(row)).toMatchObject(JSON.parse(text));
    expect([hasSummary(row, text), hasSummary(text, text), hasSummary(row, summary({ usd: 2 }))]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("reads no row from what is none", () => {
    expect(["", "7", "[]", "null", "{", "{}"].map(readRow)).toEqual(Array(6).fill(null));
  });
});

describe("the overview", () => {
  const times = { nowMs: START_MS + 1_000, sinceMs: START_MS };

  it("has the sum of all reports, in whatever parts and however often runs report", () => {
    const amounts = fc.array(fc.nat({ max: 1_000_000 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fc.array(amounts, { maxLength: 12 }), (runs) => {
        const parts = [noOverview(), noOverview()];
        let spent = 0;
        for (const [at, nanos] of runs.entries()) {
          let nanoUsd = 0;
          const reports = nanos.map((more, place) => {
            nanoUsd += more;
            return { atMs: START_MS + place, usd: nanoUsd / 1e9, calls: place + 1, at: START_MS };
          });
          spent += nanoUsd;
          const { text, atMs } = reported(reports, `run ${at % 3}`);
          const part = parts[at % 2];
          if (part !== undefined) addRun(part, rowOf(text), atMs, times);
        }
        const all = noOverview();
        for (const part of parts) addOverview(all, part);
        expect(all.since.nanoUsd).toBe(spent);
        expect(Object.values(all.hours).reduce((total, { nanoUsd }) => total + nanoUsd, 0)).toBe(spent);
        expect(Object.values(all.names).reduce((total, { nanoUsd }) => total + nanoUsd, 0)).toBe(spent);
        expect(all.runs).toBe(runs.length);
      }),
    );
  });

  it("counts as used since a time what was used in its hour and after", () => {
    const overview = noOverview();
    const { text, atMs } = reported([
      { atMs: START_MS - HOUR_MS, usd: 1, at: START_MS - HOUR_MS },
      { atMs: START_MS, usd: 3, at: START_MS },
    ]);
    addRun(overview, rowOf(text), atMs, times);
    addPast(overview, hourOf(START_MS), 500_000_000, times);
    addPast(overview, hourOf(START_MS) - 1, 250_000_000, times);
    expect(overview.since.nanoUsd).toBe(2_500_000_000);
    expect(Object.values(overview.hours).map(({ nanoUsd }) => nanoUsd)).toEqual([1_250_000_000, 2_500_000_000]);
  });

  it("has a rate of runs that work, and of none that has not reported for long", () => {
    const { text, atMs } = reported([
      { atMs: START_MS, pending: 4 },
      { atMs: START_MS + 10_000, usd: 0.5, calls: 20, pending: 4, at: START_MS },
    ]);
    const rateAt = (nowMs: number): number => {
      const overview = noOverview();
      addRun(overview, rowOf(text), atMs, { nowMs, sinceMs: START_MS });
      return overview.callsPerSecond;
    };
    expect([rateAt(atMs + OVERVIEW_RATE_MS_MAX), rateAt(atMs + OVERVIEW_RATE_MS_MAX + 1)]).toEqual([2, 0]);
    const idle = reported([{ atMs: START_MS }, { atMs: START_MS + 10_000, calls: 20, at: START_MS }]);
    const overview = noOverview();
    addRun(overview, rowOf(idle.text), idle.atMs, { nowMs: idle.atMs, sinceMs: START_MS });
    expect([overview.callsPerSecond, overview.working]).toEqual([0, 0]);
  });

  it("counts names beyond its bound together", () => {
    const overview = noOverview();
    for (let at = 0; at < OVERVIEW_NAMES_MAX + 2; at++) {
      const { text, atMs } = reported([{ atMs: START_MS, usd: 1, calls: 1, at: START_MS }], `name ${at}`);
      addRun(overview, rowOf(text), atMs, times);
    }
    expect(Object.keys(overview.names)).toHaveLength(OVERVIEW_NAMES_MAX + 1);
    expect(overview.names["(others)"]?.runs).toBe(2);
  });
});
