/** The largest bodies that routes accept, full of what costs most to read: text, escapes, messages, short prompts. */
import type { Attack } from "../attack.ts";

const BODY_BYTES = 30_000_000;

export const largeBodies: Attack = {
  what: `bodies of ${BODY_BYTES / 1e6} MB at /v1 and /batch, of words, escapes, messages and prompts`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun({ budget: { usd: 0 } });
    const chat = (content: string) =>
      Buffer.from(`{"model":"up/m","messages":[{"role":"user","content":"${content}"}]}`);
    const words = chat("the quick brown fox ".repeat(BODY_BYTES / 20));
    const escapes = chat("\\u0301".repeat(BODY_BYTES / 6));
    const message = '{"role":"user","content":"a"}';
    const list = Array.from({ length: BODY_BYTES / 30 }, () => message).join(",");
    const messages = Buffer.from(`{"model":"up/m","messages":[${list}]}`);
    const prompts = Buffer.from(
      JSON.stringify({ prompts: Array.from({ length: 50_000 }, (_, at) => `${at} `.padEnd(590, "x")) }),
    );
    return async () => {
      for (const body of [words, escapes, messages]) await attacker.send("/v1/chat/completions", { token, body });
      await attacker.send("/batch?quote=1", { token, body: prompts });
    };
  },
};
