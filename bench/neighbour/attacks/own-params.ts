/** Items with params of their own over large shared ones, and one long message for many agents. */
import type { Attack } from "../attack.ts";

const SHARED_BYTES = 1_400_000;
const ITEMS = 44;
const AGENTS = 256;

export const ownParams: Attack = {
  what: `${ITEMS} items with params of their own over ${SHARED_BYTES / 1e6} MB, as a batch, a graph and quotes; one message for ${AGENTS} agents`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun({ budget: { usd: 0 } });
    const params = { stop: "the quick brown fox ".repeat(SHARED_BYTES / 20) };
    const own = Array.from({ length: ITEMS }, (_, seed) => ({ prompt: "a", params: { seed } }));
    const items = JSON.stringify({ params, items: own });
    const tasks = JSON.stringify({ params, tasks: own.map((task, at) => ({ id: `t${at}`, ...task })) });
    const content = "the quick brown fox ".repeat(12_000);
    const agents = Array.from({ length: AGENTS }, (_, at) => ({ id: `a${at}` }));
    const copied = JSON.stringify({ messages: [{ role: "user", content }], agents });
    return async () => {
      await attacker.send("/batch?quote=1", { token, body: items });
      await attacker.send("/batch", { token, body: items });
      await attacker.send("/dag", { token, body: tasks });
      await attacker.send("/batch?quote=1", { token, body: copied });
    };
  },
};
