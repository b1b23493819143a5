/** Programs of batches and single calls. */
import { answerOf, promptOf } from "../upstream.ts";
import { listAt, textAt, type Client } from "./client.ts";
import { FAILURES, MAX_TOKENS, type Ends, type Work } from "./work.ts";

/** Single calls, all at once. */
export async function queries({ client, program: { name, slots, model }, violated }: Work): Promise<Ends> {
  let failed = 0;
  const ask = async (slot: number): Promise<void> => {
    const body = { model, prompt: promptOf(name, String(slot)), max_tokens: MAX_TOKENS };
    const headers = { "idempotency-key": `${name}-${slot}` };
    const reply = await client.reply({ method: "POST", path: "/query", body, headers }, [200, 402, 429, 502, 504]);
    if (reply.status !== 200) failed += 1;
    else checkText(name, slot, { text: textAt(JSON.parse(reply.text), "text"), violated });
  };
  await Promise.all(Array.from({ length: slots }, (_, slot) => ask(slot)));
  return { completed: slots - failed, failed };
}

/** One batch, whose client waits, is told later, or leaves and comes back. */
export async function batch(work: Work): Promise<Ends> {
  const { world, client, program } = work;
  const request = batchOf(program, program.kind === "hedged" ? { hedge: { after: 4_000, max_extra: 0.5 } } : {});
  if (program.kind === "leaves") await client.leave(request, world.random.integer(0, 20_000));
  const isLater = program.kind === "async" || program.kind === "leaves";
  const opened = await client.call(isLater ? later(request) : request, [200, 202]);
  const at = `/groups/${textAt(opened, "id")}`;
  const group = isLater ? await client.followed(at) : opened;
  return checkEnded(group, { ...work, at, mayExhaust: program.kind === "poor" });
}

export type Opening = { method: string; path: string; body: object; headers: Record<string, string> };

/** The request of a batch with a slot's prompt at each place. */
export function batchOf(
  { name, slots, model }: { name: string; slots: number; model: string },
  settings: object,
): Opening {
  const prompts = Array.from({ length: slots }, (_, slot) => promptOf(name, String(slot)));
  const body = { model, prompts, max_tokens: MAX_TOKENS, error_style: "null", ...settings };
  return { method: "POST", path: "/batch", body, headers: { "idempotency-key": name } };
}

/** The same request, which is replied to at once. */
export function later(opening: Opening): Opening {
  return { ...opening, headers: { ...opening.headers, prefer: "respond-async" } };
}

export type Checked = {
  client: Client;
  program: { name: string; slots: number };
  violated: (what: string) => void;
  /** The group's path. */
  at: string;
  /** Its slots may find the budget used up. */
  mayExhaust: boolean;
};

/** Every slot of an ended batch has its own answer, in order, and has it later as well. */
export async function checkEnded(group: object, checked: Checked): Promise<Ends> {
  const { client, at, violated, mayExhaust, program } = checked;
  const results = listAt(group, "results");
  const errors = listAt(group, "errors");
  if (results.length !== program.slots) violated(`${results.length} results for ${program.slots} slots`);
  let failed = 0;
  for (const [slot, result] of results.entries()) {
    if (typeof result === "string") checkText(program.name, slot, { text: result, violated });
    else {
      failed += 1;
      const code = textAt(errors[slot] ?? {}, "code");
      const isPoor = mayExhaust && code === "budget_exhausted";
      if (!isPoor && !FAILURES.has(code)) violated(`slot ${slot} failed with ${code}`);
    }
  }
  // Once more, from the rows: the same.
  const again = await client.followed(at);
  if (JSON.stringify(listAt(again, "results")) !== JSON.stringify(results))
    violated("the results of the ended group have changed");
  return { completed: program.slots - failed, failed };
}

function checkText(
  name: string,
  slot: number,
  { text, violated }: { text: string; violated: (what: string) => void },
): void {
  if (text !== answerOf(name, String(slot))) violated(`slot ${slot} got the answer "${text}"`);
}
