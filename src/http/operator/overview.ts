/** `GET /overview`: what all root runs do and have used. It asks the parts of the list of runs, and wakes no run. */
import type { Context } from "hono";
import { zodReason } from "../../contract/errors.ts";
import { overviewQuery, type OverviewDocument } from "../../contract/operator/overview.ts";
import { Refusal } from "../../errors.ts";
import { OVERVIEW_NAMES_SHOWN_MAX } from "../../limits.ts";
import { hourOf, hourStart, sum } from "../../log/overview/history.ts";
import { addOverview, noOverview, type Overview } from "../../log/overview/overview.ts";
import { directoriesOf } from "../../objects/address.ts";
import { usdOf } from "../../run/money/money.ts";
import type { AppEnv } from "../context.ts";
import type { Handlers } from "../handler.ts";

export const overviewHandlers = {
  "GET /overview": async (c) => {
    const query = overviewQuery().safeParse(c.req.query());
    if (!query.success) throw new Refusal(zodReason(query.error));
    const nowMs = Date.now();
    const { since } = query.data;
    const sinceMs = since === undefined ? nowMs - (nowMs % DAY_MS) : Date.parse(since);
    return c.json(await overviewOf(c, nowMs, sinceMs));
  },
} satisfies Partial<Handlers>;

const DAY_MS = 86_400_000;

async function overviewOf(c: Context<AppEnv>, nowMs: number, sinceMs: number): Promise<OverviewDocument> {
  const parts = await Promise.allSettled(directoriesOf(c.env).map((directory) => directory().overview(sinceMs)));
  const read = parts.flatMap((part) => (part.status === "fulfilled" ? [part.value] : []));
  const failed = parts.find((part) => part.status === "rejected");
  if (read.length === 0 && failed !== undefined) throw failed.reason;
  const overview = noOverview();
  for (const part of read) addOverview(overview, part);
  const isComplete = read.length === parts.length && overview.partsCut === 0;
  return shown(overview, { nowMs, sinceMs, isComplete });
}

function shown(
  { since, names, hours, ...now }: Overview,
  { nowMs, sinceMs, isComplete }: { nowMs: number; sinceMs: number; isComplete: boolean },
): OverviewDocument {
  const byCost = Object.entries(names).toSorted(([, a], [, b]) => b.nanoUsd - a.nanoUsd || b.runs - a.runs);
  return {
    object: "overview",
    at: new Date(nowMs).toISOString(),
    since: hourStart(hourOf(sinceMs)).toISOString(),
    runs: now.runs,
    working: now.working,
    in_flight: now.inFlight,
    queued: now.queued,
    calls_per_second: now.callsPerSecond,
    usd_per_minute: usdOf(now.nanoUsdPerMinute),
    spent_usd: usdOf(since.nanoUsd),
    attempts: since.calls,
    failed: sum(since.failures),
    failures: descending(since.failures).map(([code, calls]) => ({ code, calls })),
    by_model: descending(since.models).map(([model, nanoUsd]) => ({ model, usd: usdOf(nanoUsd) })),
    by_name: byCost.slice(0, OVERVIEW_NAMES_SHOWN_MAX).map(([name, { nanoUsd, runs, failed }]) => {
      return { name: name === "" ? null : name, usd: usdOf(nanoUsd), runs, failed };
    }),
    hours: Object.entries(hours)
      .toSorted(([a], [b]) => Number(a) - Number(b))
      .map(([hour, { nanoUsd, calls: attempts, failed }]) => {
        return { hour: hourStart(Number(hour)).toISOString(), usd: usdOf(nanoUsd), attempts, failed };
      }),
    complete: isComplete,
  };
}

function descending(amounts: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(amounts).toSorted(([, a], [, b]) => b - a);
}
