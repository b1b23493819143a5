/** `POST /runs/:id/turn`: what a run has done when an operator told it to go on. */
import * as z from "zod";
import { runStatus } from "../runs.ts";
import { atFirstUse } from "../../at-first-use.ts";

const turnLook = atFirstUse(() =>
  z
    .object({
      status: runStatus(),
      queued: z.int().meta({ description: "Calls that may start, and wait for a permit, the budget or a key" }),
      delayed: z.int().meta({ description: "Calls that wait for a time, such as a retry" }),
      in_flight: z.int(),
      open_groups: z.int(),
      open_children: z.int(),
      alarm_at: z.iso
        .datetime()
        .nullable()
        .meta({ description: "When the run looks again by itself; null: it does not" }),
    })
    .meta({ id: "TurnLook" }),
);

export const turnDocument = atFirstUse(() =>
  z
    .object({
      object: z.literal("turn"),
      id: z.string(),
      finished: z.boolean().meta({ description: "false: a job still waits for another object, and goes on" }),
      before: turnLook(),
      after: turnLook(),
      events: z
        .record(z.string(), z.int())
        .meta({ description: "What the turn has done: the events it has added to the log, by type" }),
      events_after: z.int().meta({ description: "Their first has the next number: read them with `?after=`" }),
    })
    .meta({ id: "Turn" }),
);
export type TurnDocument = z.infer<ReturnType<typeof turnDocument>>;
