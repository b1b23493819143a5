/** What the parts of the bench send to `/dag`, and read from its answer. */
import { z } from "zod";
import type { Gateway } from "../../test/support/gateway.ts";

const task = z.looseObject({ status: z.string(), output: z.string().nullable(), attempts: z.int() });
const graph = z.looseObject({
  id: z.string(),
  status: z.string(),
  tasks: z.record(z.string(), task),
  metrics: z.looseObject({ critical_path_ms: z.number(), wall_ms: z.number(), sequential_ms: z.number() }),
});
export type GraphAnswer = z.infer<typeof graph>;

export type Task = { id: string; prompt: string; dependencies?: string[]; [field: string]: unknown };

/** Runs a graph to its end. Returns its answer and the time that the client has measured, ms. */
export async function runGraph(
  gateway: Pick<Gateway, "fetch">,
  token: string,
  body: { tasks: readonly { id: string }[] } & Record<string, unknown>,
): Promise<{ answer: GraphAnswer; wallMs: number }> {
  const startedMs = performance.now();
  const response = await gateway.fetch("/dag", { token, json: body });
  const text = await response.text();
  const wallMs = performance.now() - startedMs;
  if (response.status !== 200) throw new Error(`/dag answered ${response.status}: ${text.slice(0, 1_000)}`);
  return { answer: graphOf(text), wallMs };
}

export function graphOf(text: string): GraphAnswer {
  return graph.parse(JSON.parse(text));
}
