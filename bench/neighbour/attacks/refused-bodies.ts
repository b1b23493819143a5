/** Bodies that are refused, with as many unknown names as fit. */
import type { Attack } from "../attack.ts";

const BODY_BYTES = 8_000_000;

export const refusedBodies: Attack = {
  what: `bodies of ${BODY_BYTES / 1e6} MB full of unknown names, at /query, /batch and /v1`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun();
    const names = Array.from({ length: BODY_BYTES / 16 }, (_, at) => `"u${String(at).padStart(9, "0")}":1`).join(",");
    const query = Buffer.from(`{"prompt":"p",${names}}`);
    const batch = Buffer.from(`{"prompts":["p"],${names}}`);
    const chat = Buffer.from(`{"model":"up/m","messages":[{"role":"user","content":"p"}],"max_tokens":16,${names}}`);
    return async () => {
      await attacker.send("/query", { token, body: query });
      await attacker.send("/batch", { token, body: batch });
      await attacker.send("/v1/chat/completions", { token, body: chat });
    };
  },
};
