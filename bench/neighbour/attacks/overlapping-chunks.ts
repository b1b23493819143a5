/** Quotes over a text that is cut at lines, into chunks that repeat nearly all of each other. */
import { z } from "zod";
import type { Attack } from "../attack.ts";

const TEXT_BYTES = 1_000_000;
/** Ways to cut the text, and quotes of each. */
const SPLITS = 8;
const QUOTES = 1;

export const overlappingChunks: Attack = {
  what: `a context of ${TEXT_BYTES / 1e6} MB and ${SPLITS * QUOTES} quotes over it, cut at its 333,000 lines in ${SPLITS} ways with overlaps of half of it`,
  prepare: async (attacker, round) => {
    const { token } = await attacker.openRun();
    // Each text is another one: what the gateway has found out about a text is not to be known from the round before.
    const text = `${round}\n${"ab\n".repeat(TEXT_BYTES / 3)}`;
    return async () => {
      const headers = { "content-type": "text/plain" };
      const stored = await attacker.send("/contexts", { token, body: text, headers });
      const { id: context } = z.object({ id: z.string() }).parse(JSON.parse(stored.text));
      for (let sent = 0; sent < SPLITS * QUOTES; sent += 1) {
        const split = { by: "lines", size: 500_000 + (sent % SPLITS), overlap: 499_900 };
        const body = JSON.stringify({ over: { context, split }, prompt: "Summarise: {{chunk}}" });
        await attacker.send("/batch?quote=1", { token, body });
      }
    };
  },
};
