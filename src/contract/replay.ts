/** Replay: the fields of `POST /runs`, and the header that names an epoch. */
import * as z from "zod";
import { EPOCH_CHARS_MAX } from "../limits.ts";
import type { Parsed } from "./errors.ts";
import { invalid } from "./errors.ts";
import { label } from "./fields.ts";
import { atFirstUse } from "../at-first-use.ts";

/** Fields of a request for a run. */
export const replayFields = atFirstUse(() => ({
  replay: z.literal("run").optional().meta({
    description:
      "Records the run's answers, and gives them to later calls with the same content, at no cost. A child of a run that records also records, and replays its parent's answers",
  }),
  replay_from: label.optional().meta({
    description:
      "A run with `replay` whose recorded answers this run also replays, for a child instead of its parent's; it records its own",
  }),
}));

/** Set if a call ended with a recorded answer. */
export const replayedFlag = atFirstUse(() =>
  z.literal(true).optional().meta({
    description: "Set if it was answered with a recorded answer, at no cost",
  }),
);

/** The header's value; empty if it is missing. It is stored with each answer, so it is short and plain. */
export function parseEpoch(header: string | undefined): Parsed<string> {
  if (header === undefined) return { ok: true, value: "" };
  if (/^[\x21-\x7e]+$/.test(header) && header.length <= EPOCH_CHARS_MAX) return { ok: true, value: header };
  return invalid("x-fanout-epoch", `expected 1 to ${EPOCH_CHARS_MAX} visible ASCII characters, such as a UUID`);
}
