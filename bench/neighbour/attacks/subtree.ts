/** Reads that add up all child runs, many at once. */
import type { Attack } from "../attack.ts";

const CHILDREN = 300;
const READS = 40;

export const subtree: Attack = {
  what: `${READS} parallel reads of the sum over ${CHILDREN} child runs`,
  prepare: async (attacker) => {
    const { id, token } = await attacker.openRun({ max_depth: 2 });
    const body = JSON.stringify({ budget: { usd: 0.001 } });
    for (let opened = 0; opened < CHILDREN; opened += 10) {
      await Promise.all(Array.from({ length: 10 }, () => attacker.send("/runs", { token, body })));
    }
    return () => Promise.all(Array.from({ length: READS }, () => attacker.send(`/runs/${id}?subtree=1`, { token })));
  },
};
