/** Large settings that all calls of a batch share, in a run that has no money for one of them. */
import type { Attack } from "../attack.ts";

const PARAMS_BYTES = 1_400_000;
const ITEMS = 44;

export const sharedParams: Attack = {
  what: `${ITEMS} items that share ${PARAMS_BYTES / 1e6} MB of params, in a run without money`,
  prepare: async (attacker) => {
    const { token } = await attacker.openRun({ budget: { usd: 0 } });
    const body = JSON.stringify({
      items: Array.from({ length: ITEMS }, (_, at) => ({ prompt: `question ${at}` })),
      params: { tools: tools(PARAMS_BYTES) },
    });
    return async () => {
      for (let at = 0; at < 3; at += 1) await attacker.send("/batch", { token, body });
    };
  },
};

/** Tools of so many bytes in all, as an agent has them. */
function tools(bytes: number): unknown[] {
  const description = "Looks a word up, and says what it means. ".repeat(20);
  const tool = (at: number): unknown => ({
    type: "function",
    function: {
      name: `tool_${at}`,
      description,
      parameters: { type: "object", properties: { word: { type: "string" } } },
    },
  });
  return Array.from({ length: Math.floor(bytes / JSON.stringify(tool(1_000)).length) }, (_, at) => tool(at));
}
