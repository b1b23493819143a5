/** Quotes over a text that is cut at lines, into chunks that repeat nearly all of each other. */
import { z } from "zod";
import type { Attack } from "../attack.ts";

const TEXT_BYTES = 1_000_000;

export const overlappingChunks: Attack = {
  what: `quotes over a context of ${TEXT_BYTES / 1e6} MB, cut at its 333,000 lines with overlaps of half of it`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun();
    const stored = await attacker.send("/contexts", {
      token,
      body: "ab\n".repeat(TEXT_BYTES / 3),
      headers: { "content-type": "text/plain" },
    });
    const { id: context } = z.object({ id: z.string() }).parse(JSON.parse(stored.text));
    const split = { by: "lines", size: 500_000, overlap: 499_900 };
    const body = JSON.stringify({ over: { context, split }, prompt: "Summarise: {{chunk}}" });
    return () => attacker.send("/batch?quote=1", { token, body });
  },
};
