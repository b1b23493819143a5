/** Retries of a batch: requests of no bytes, for what may be megabytes of calls and answers. */
import * as z from "zod";
import type { Attack } from "../attack.ts";

const CALLS = 64;
const PROMPT_CHARS = 20_000;
const RETRIES = 16;

const answer = z.looseObject({ id: z.string() });

export const retries: Attack = {
  what: `${RETRIES} retries of a batch of ${CALLS} calls with ${PROMPT_CHARS / 1_000} KB and as long answers`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun();
    // One call fails each time, so that there is something to retry.
    const items = Array.from({ length: CALLS }, (_, at) => ({ prompt: `${at} ${"x".repeat(PROMPT_CHARS)}` }));
    const failing = { prompt: "a", model: "sim/fail?status=400" };
    const body = JSON.stringify({ model: "sim/echo", items: [...items, failing] });
    const { text } = await attacker.send("/batch", { token, body });
    const { id } = answer.parse(JSON.parse(text));
    const headers = { prefer: "respond-async" };
    return async () => {
      for (let retried = 0; retried < RETRIES; retried += 1)
        await attacker.send(`/groups/${id}/retry`, { token, body: "{}", headers });
    };
  },
};
