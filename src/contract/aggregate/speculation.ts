/** What the answer of a graph with `speculate` says of the calls that were made before their conditions were known. */
import * as z from "zod";
import { atFirstUse } from "../../at-first-use.ts";

export const speculationReply = atFirstUse(() =>
  z
    .object({
      started: z.int().meta({ description: "Calls that were made early" }),
      used: z.int().meta({ description: "Those whose answers their tasks have" }),
      in_flight: z.int().meta({ description: "Those that have not ended" }),
      spent_usd: z.number().meta({ description: "Cost of all that have ended. `usage` does not contain it" }),
      wasted_usd: z.number().meta({ description: "The part of it whose answers no task has, nor will have" }),
    })
    .meta({ description: "Of a graph with `speculate`: its early calls" }),
);
