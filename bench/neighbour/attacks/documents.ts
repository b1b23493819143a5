/** Many readers of the largest documents that every token may read. */
import type { Attack } from "../attack.ts";

const READS = 40;

export const documents: Attack = {
  what: `${READS} parallel reads of /docs and of /openapi.json`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun();
    return async () => {
      for (const path of ["/docs", "/openapi.json"]) {
        await Promise.all(Array.from({ length: READS }, () => attacker.send(path, { token })));
      }
    };
  },
};
