/** Small bodies that ask for as many calls as one batch may have: the same prompt so often, and as many tiny prompts, over HTTP and MCP. */
import * as z from "zod";
import type { Attack } from "../attack.ts";

/** `ITEMS_PER_BATCH_MAX`. */
const CALLS = 50_000;
/** Characters of the body that asks for so many copies. */
const COPIED_BODY_CHARS = 1_200;

const accepted = z.looseObject({ id: z.string() });

export const manyCalls: Attack = {
  what: `${CALLS} copies of one prompt by a body of ${COPIED_BODY_CHARS} characters, and ${CALLS} tiny prompts, on runs without money, over HTTP and MCP; and a batch that is cancelled at once`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun({ budget: { usd: 0 } });
    const rich = await attacker.openRun({ max_parallel: 1 });
    const copied = JSON.stringify({ prompt: "x".repeat(COPIED_BODY_CHARS), n: CALLS });
    const waiting = JSON.stringify({ prompt: "x".repeat(COPIED_BODY_CHARS), n: CALLS, model: "pull/worker" });
    const prompts = Array.from({ length: CALLS }, () => "a");
    const listed = JSON.stringify({ prompts });
    const call = { name: "llm_batch", arguments: { prompts } };
    const mcp = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call });
    return async () => {
      await attacker.send("/batch?quote=1", { token, body: copied });
      await attacker.send("/batch", { token, body: copied });
      await attacker.send("/batch", { token, body: listed });
      await attacker.send("/mcp", { token, body: mcp });
      const headers = { prefer: "respond-async" };
      const { text } = await attacker.send("/batch", { token: rich.token, body: waiting, headers });
      await attacker.send(`/groups/${accepted.parse(JSON.parse(text)).id}`, { token: rich.token, method: "DELETE" });
    };
  },
};
