/** Pull workers that complete their own items with a cost, tokens and texts that nobody reserved, again and again. */
import * as z from "zod";
import type { Attack } from "../attack.ts";

const ITEMS = 64;
/** Completions of each item before one that is true. */
const TRIES = 10;
/** Characters of the answer in a completion. */
const TEXT_CHARS = 20_000;

const USAGES = [
  { prompt_tokens: 1, completion_tokens: 1, cost: 1_000_000 },
  { prompt_tokens: 1_000_000_000, completion_tokens: 1 },
  { prompt_tokens: 1, completion_tokens: 1_000_000_000, cost: 0 },
];

const taken = z.object({ items: z.array(z.looseObject({ lease_id: z.string() })) });

export const pullClaims: Attack = {
  what: `${ITEMS * TRIES} hostile completions of ${ITEMS} items by a pull worker of the run itself, of ${TEXT_CHARS / 1_000} KB each`,
  prepare: async (attacker) => {
    const { id, token } = await attacker.openRun({
      budget: { usd: 1, prompt_tokens: 100_000, completion_tokens: 100_000 },
    });
    const prompts = Array.from({ length: ITEMS }, (_, at) => `item ${at}`);
    const batch = JSON.stringify({ model: "pull/worker", max_tokens: 100, prompts });
    const headers = { prefer: "respond-async" };
    await attacker.send("/batch", { token, body: batch, headers });
    const claim = JSON.stringify({ max: ITEMS, wait_ms: 10_000 });
    const leases: string[] = [];
    for (let asked = 0; asked < 10 && leases.length < ITEMS; asked += 1) {
      const { text } = await attacker.send(`/runs/${id}/claim`, { token, body: claim });
      leases.push(...taken.parse(JSON.parse(text)).items.map(({ lease_id }) => lease_id));
    }
    const text = "x".repeat(TEXT_CHARS);
    const completions = leases.map((lease_id) => USAGES.map((usage) => JSON.stringify({ lease_id, text, usage })));
    const strike = async (bodies: readonly string[]): Promise<void> => {
      for (let tried = 0; tried < TRIES; tried += 1) {
        const body = bodies[tried % bodies.length] ?? "";
        await attacker.send(`/runs/${id}/complete`, { token, body });
      }
    };
    return () => Promise.all(completions.map(strike));
  },
};
