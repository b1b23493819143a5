/**
 * Exchange with the upstream objects, which store what upstreams' templates add to prompts: a run reads them when admission
 * first needs one, and reports what its own attempts have shown. A call waits for the read only if the budget does not
 * cover what a template might add. All runs of an isolate share what was read for a while, so that many short runs cause
 * few reads.
 */
import { isKnown } from "../../../src/run/money/template.ts";
import { testimonyOf } from "../../../src/run/money/witnesses.ts";
import type { TemplateRow, Templates } from "../../../src/run/learned/templates.ts";
import { TEMPLATES_FRESH_MS } from "../../../src/limits.ts";
import { withRetry } from "../../../src/objects/clients/retry.ts";
import { upstreamOf, type Objects } from "../../../src/objects/address.ts";

const recent = new Map<string, { rows: readonly TemplateRow[]; atMs: number }>();

/** The templates of an upstream that were read in this isolate lately; null if none were. */
export function recallTemplates(upstream: string, nowMs: number): readonly TemplateRow[] | null {
  const known = recent.get(upstream);
  return known === undefined || nowMs - known.atMs >= TEMPLATES_FRESH_MS ? null : known.rows;
}

/** Reads what admission needs and reports what is new; null if there is nothing to do. `arrived` is called after each reply. */
export function exchangeTemplates(
  objects: Objects,
  templates: Templates,
  { root, now, arrived }: { root: string; now: () => number; arrived: () => void },
): Promise<unknown> | null {
  const news = unstored(templates.takeNews(), root, now());
  const upstreams = new Set([...templates.takeWanted(), ...news.keys()]);
  if (upstreams.size === 0) return null;
  const exchanges = [...upstreams].map(async (upstream) => {
    const seen = news.get(upstream);
    const rows = await exchange(objects, upstream, seen).catch(() => null);
    // Copied: workerd keeps what a call returned until its next full collection.
    if (rows !== null) recent.set(upstream, { rows: rows.map((row) => ({ ...row })), atMs: now() });
    // If nothing can be read, calls that wait for it must proceed with what this run knows.
    templates.read(upstream, rows, now());
    arrived();
  });
  return Promise.allSettled(exchanges);
}

/**
 * What is new to the upstream objects, too. A run object that slept has forgotten what it knew, but its isolate often has
 * not: without this, each call of a slow run would report once more what is stored.
 */
function unstored(news: Map<string, TemplateRow[]>, root: string, nowMs: number): Map<string, TemplateRow[]> {
  const left = new Map<string, TemplateRow[]>();
  for (const [upstream, rows] of news) {
    const stored = recent.get(upstream)?.rows ?? [];
    const isStored = (seen: TemplateRow): boolean =>
      stored.some(
        ({ witnesses = [], ...row }) =>
          row.model === seen.model &&
          row.shape === seen.shape &&
          isKnown(testimonyOf(witnesses, root, nowMs).stored, seen),
      );
    const fresh = rows.filter((row) => !isStored(row));
    if (fresh.length > 0) left.set(upstream, fresh);
  }
  return left;
}

/** Both calls are idempotent. Rejects when the retries are spent: then this run alone knows what it has seen. */
function exchange(objects: Objects, upstream: string, seen?: TemplateRow[]): Promise<TemplateRow[]> {
  const call = async (): Promise<TemplateRow[]> => {
    const stub = upstreamOf(objects, upstream);
    return await (seen === undefined ? stub.templates() : stub.learn(seen));
  };
  return withRetry(call, { wait: (ms) => scheduler.wait(ms), random: Math.random });
}
