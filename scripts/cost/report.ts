/** What the tests of test/objects/cost print of their counts. */
import { z } from "zod";
import type { Counted } from "../../test/objects/cost/counted.ts";

const line = z.object({
  name: z.string(),
  rows: z.number(),
  requests: z.number(),
  commits: z.number(),
  alarms: z.number(),
  messages: z.number(),
  awakeS: z.number(),
});

/** The counts in the output of the tests, by way in: lines that begin with `counted`. */
export function countedIn(output: string): Map<string, Counted> {
  const counts = new Map<string, Counted>();
  for (const [, json = ""] of output.matchAll(/^counted (\{.*\})$/gm)) {
    const { name, ...counted } = line.parse(JSON.parse(json));
    counts.set(name, counted);
  }
  return counts;
}
