/** Clients that read a large log, many at once: some to its end, and some not at all. */
import type { Attack } from "../attack.ts";

const READERS = 64;
const AT_ONCE = 8;
const EVENTS = 46;
const EVENT_BYTES = 130_000;

export const logReaders: Attack = {
  what: `${READERS} silent readers of a log of ${Math.round((EVENTS * EVENT_BYTES) / 1e6)} MB, and ${AT_ONCE} that read it`,
  prepare: async (attacker) => {
    const { id, token } = await attacker.openRun();
    const event = { event_type: "final_result", output: "x".repeat(EVENT_BYTES - 100) };
    await attacker.send("/log", { token, body: JSON.stringify(Array.from({ length: EVENTS }, () => event)) });
    return async () => {
      for (let at = 0; at < READERS; at += AT_ONCE)
        await Promise.all(Array.from({ length: AT_ONCE }, () => attacker.hang(`/runs/${id}/log`, { token })));
      await Promise.all(Array.from({ length: AT_ONCE }, () => attacker.send(`/runs/${id}/log`, { token })));
    };
  },
};
