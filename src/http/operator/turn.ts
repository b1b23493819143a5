/** `POST /runs/:id/turn`: makes a run do at once what its alarm would do, and says what it did. For a run that does not go on. */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import type { TurnDocument } from "../../contract/operator/turn.ts";
import { Refusal } from "../../errors.ts";
import { NAME_CHARS_MAX } from "../../limits.ts";
import type { TurnLook, TurnReport } from "../../objects/methods/runs.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import { LogReader } from "../../objects/clients/log-reader.ts";
import { settled } from "../../objects/clients/settlements.ts";
import type { Handlers } from "../handler.ts";

export const turnHandlers = {
  "POST /runs/:id/turn": async (c) => {
    const id = c.req.param("id");
    await settled(c.env, id);
    const report = await new RunCaller(c.env, id).callWithRetry<TurnReport | null>((run) => run.turnNow());
    if (report === null) throw new Refusal({ reason: "not_found", what: `run ${id.slice(0, NAME_CHARS_MAX)}` });
    const { before, after, isFinished, logFrom } = report;
    const turn: TurnDocument = {
      object: "turn",
      id,
      finished: isFinished,
      before: shownLook(before),
      after: shownLook(after),
      events: await eventsOf(c, id, report),
      events_after: logFrom,
    };
    return c.json(turn);
  },
} satisfies Partial<Handlers>;

function shownLook({ status, queued, delayed, inFlight, openGroups, openChildren, alarmAtMs }: TurnLook) {
  const counts = { status, queued, delayed, in_flight: inFlight, open_groups: openGroups, open_children: openChildren };
  return { ...counts, alarm_at: alarmAtMs === null ? null : new Date(alarmAtMs).toISOString() };
}

/** How many events of each type the turn has added. */
async function eventsOf(
  c: Context<AppEnv>,
  id: string,
  { logFrom, logTo }: TurnReport,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  if (logTo <= logFrom) return counts;
  for await (const page of new LogReader(c.env, id, null).history(logFrom)) {
    for (const { seq, type } of page) if (seq <= logTo) counts[type] = (counts[type] ?? 0) + 1;
  }
  return counts;
}
