/** Opening a group: its calls become pages, large ones reach the run object in several calls, and its lanes are started. */
import type { Context } from "hono";
import { laneOf } from "../../durable-objects/address.ts";
import type { RunCaller } from "../../durable-objects/again.ts";
import type { OpenGroupReply, OpenGroupRequest, Refused } from "../../durable-objects/run/rpc.ts";
import type { CallBody, CallFacts } from "../call.ts";
import type { AppEnv } from "../context.ts";
import { PageBuilder, type Page } from "../engine/page.ts";
import { Refusal } from "../errors.ts";
import { GROUP_CHARS_MAX, PAGES_CALL_CHARS_MAX } from "../limits.ts";
import { dedupeKeyOf } from "./dedupe.ts";

/** What is opened. `calls` are read once. */
export type Opening = {
  calls: Iterable<{ body: CallBody; facts: CallFacts; id: string | null }>;
  defaults: Pick<CallBody, "system" | "temperature" | "params">;
  dedupe: boolean;
  rules: Omit<OpenGroupRequest, "openKey" | "models" | "defaultsJson">;
};

export type Opened = Extract<OpenGroupReply, { ok: true }>;

/** Opens a group, or finds the one that its Idempotency-Key has opened, and sees to it that its lanes run. */
export async function openGroup(c: Context<AppEnv>, runId: string, run: RunCaller, opening: Opening): Promise<Opened> {
  // A reply that is lost is asked for again: the object knows the group by this.
  const openKey = crypto.randomUUID();
  const { builder, pages } = await stage(run, openKey, opening);
  const defaultsJson = JSON.stringify(opening.defaults);
  const request: OpenGroupRequest = { ...opening.rules, openKey, models: builder.models, defaultsJson };
  const opened = await run.untilAnswered<OpenGroupReply>((stub) => stub.openGroup(request, pages));
  if (!opened.ok) throw new Refusal(opened.reason);
  c.set("remainingNanoUsd", opened.remainingNanoUsd);
  const starting = opened.lanes.map((lane) => laneOf(c.env, runId, lane).start(runId, lane));
  // A lane that does not start is started again by the run's alarm.
  c.executionCtx.waitUntil(Promise.allSettled(starting));
  return opened;
}

/** Sends all but the last pages ahead. */
async function stage(
  run: RunCaller,
  openKey: string,
  { calls, defaults, dedupe }: Opening,
): Promise<{ builder: PageBuilder; pages: Page[] }> {
  const builder = new PageBuilder(defaults);
  let pages: Page[] = [];
  let chars = 0;
  for (const { body, facts, id } of calls) {
    const known = dedupe ? { ...facts, dedupeKey: await dedupeKeyOf(body, facts) } : facts;
    const page = builder.add({ body, facts: known, id });
    if (builder.totalChars > GROUP_CHARS_MAX) {
      const what = "the batch with its shared settings";
      throw new Refusal({ reason: "payload_too_large", what, bytesMax: GROUP_CHARS_MAX, param: null });
    }
    if (page === null) continue;
    if (chars + page.calls.length > PAGES_CALL_CHARS_MAX) {
      const sent = pages;
      const refused = await run.untilAnswered<Refused | null>((stub) => stub.stagePages(openKey, sent));
      if (refused !== null) throw new Refusal(refused.reason);
      pages = [];
      chars = 0;
    }
    pages.push(page);
    chars += page.calls.length;
  }
  const last = builder.flush();
  if (last !== null) pages.push(last);
  return { builder, pages };
}
