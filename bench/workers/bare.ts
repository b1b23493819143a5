/**
 * The ceiling: a Worker that makes the same fetches as a batch and keeps nothing. No ledger, no objects, no retries; a
 * work-conserving pool of `width` loops, each reply parsed for its text, results joined in input order.
 */
import { completionBody, promptOf } from "../load/prompts.ts";

type Bindings = { UPSTREAM: string };
type FanOutRequest = { n: number; width: number; prompt_bytes?: number };
type Completion = { choices: { message: { content: string } }[]; usage: { total_tokens: number } };

export default {
  async fetch(request: Request, env: Bindings): Promise<Response> {
    const fanOut: FanOutRequest = await request.json();
    const results: string[] = [];
    let next = 0;
    let tokens = 0;
    const loop = async () => {
      while (next < fanOut.n) {
        const index = next++;
        const response = await fetch(`${env.UPSTREAM}/v1/chat/completions`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: "Bearer bench" },
          body: completionBody(promptOf(index, fanOut.prompt_bytes)),
        });
        const completion: Completion = JSON.parse(await response.text());
        results[index] = completion.choices[0]?.message.content ?? "";
        tokens += completion.usage.total_tokens;
      }
    };
    await Promise.all(Array.from({ length: Math.min(fanOut.width, fanOut.n) }, loop));
    return Response.json({ results, usage: { total_tokens: tokens } });
  },
};
