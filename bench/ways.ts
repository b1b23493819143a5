/**
 * `npm run bench:ways [-- --functions]`: the folders whose functions run on three ways through the gateway, counted in the one isolate of
 * Worker and objects: a relayed chat from its request to its stored end, the end of an attempt of a batch from the upstream's answer
 * on, and a batch's body until its group is open. Each way is gone three times before it counts, so that what is built at first
 * use does not. `--functions` names the functions too. A function counts where it is written, whoever got it as an effect, when it begins
 * and when it goes on after it has waited; a table of constants and an import of types do not count. What a timer of another subject does
 * meanwhile counts along.
 */
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { roomsOf, UNPLACED, watched, type Coverage } from "./ways/coverage.ts";
import { MODEL } from "./load/prompts.ts";
import { openRun, startGateway, watchedBundle } from "./servers/servers.ts";

const { values } = parseArgs({ options: { functions: { type: "boolean", default: false } } });
/** What follows an answer, such as a settlement and the gate's next exchange, has happened by then. */
const QUIET_MS = 1_500;
const WARM_UPS = 3;

/** An upstream that answers when it is told to. */
const held: (() => void)[] = [];
let holds = false;
const reply = JSON.stringify({
  id: "chatcmpl-ways",
  object: "chat.completion",
  created: 1_763_712_000,
  model: MODEL,
  choices: [{ index: 0, message: { role: "assistant", content: "An answer." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
});
const upstream = createServer((request, response) => {
  request.resume().on("end", () => {
    const answer = () => void response.writeHead(200, { "content-type": "application/json" }).end(reply);
    if (holds) held.push(answer);
    else answer();
  });
});
await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
const address = z.object({ port: z.number() }).parse(upstream.address());

const { bundle, places } = watched(await watchedBundle());
await using gateway = await startGateway(
  {
    url: `http://127.0.0.1:${address.port}`,
    rssBytes: () => 0,
    cpuMs: () => 0,
    output: () => "",
    [Symbol.asyncDispose]: async () => {},
  },
  { bundle },
);

const post = async (token: string, path: string, body: object, headers: Record<string, string> = {}) => {
  const answer = await fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`POST ${path} answered ${answer.status}: ${text}`);
};
/** Functions that ran since the last call of this. */
const taken = async (): Promise<Coverage> =>
  roomsOf(await (await fetch(`${gateway.url}/bench/functions`)).text(), places);

async function counted(way: () => Promise<Coverage>): Promise<Coverage> {
  for (let time = 0; time < WARM_UPS; time++) await way();
  return await way();
}

async function relayedChat(token: string): Promise<Coverage> {
  await sleep(QUIET_MS);
  await taken();
  await post(token, "/v1/chat/completions", { model: MODEL, messages: [{ role: "user", content: "A question." }] });
  await sleep(QUIET_MS);
  return await taken();
}

async function settledAttempt(token: string): Promise<Coverage> {
  holds = true;
  const batch = post(token, "/batch", { prompts: ["A question."] });
  while (held.length === 0) await sleep(10);
  await sleep(QUIET_MS);
  await taken();
  holds = false;
  for (const answer of held.splice(0)) answer();
  await batch;
  await sleep(QUIET_MS);
  return await taken();
}

/** The run's budget is used up, so its groups open and wait. */
async function openedBatch(): Promise<Coverage> {
  const token = await openRun(gateway, { calls: 1 }, { on_exhausted: "pause" });
  await post(token, "/query", { prompt: "The only one." });
  await sleep(QUIET_MS);
  await taken();
  await post(token, "/batch", { prompts: ["One.", "Two."] }, { prefer: "respond-async" });
  return await taken();
}

const token = await openRun(gateway);
const ways = {
  "a relayed chat": await counted(() => relayedChat(token)),
  "the end of an attempt": await counted(() => settledAttempt(token)),
  "a batch until its group is open": await counted(openedBatch),
};
for (const [name, rooms] of Object.entries(ways)) {
  const own = [...rooms].filter(([room]) => /^(?:src|durable-objects)(?:\/|$)/.test(room));
  const sum = own.reduce((count, [, functions]) => count + functions.length, 0);
  const topmost = new Set(own.map(([room]) => room.split("/").slice(0, 2).join("/")));
  console.log(`\n${name}: ${own.length} folders in ${topmost.size} of the topmost ones, ${sum} functions`);
  for (const [room, functions] of own.toSorted(([a], [b]) => a.localeCompare(b)))
    console.log(`  ${room}: ${functions.length}${values.functions ? ` (${functions.toSorted().join(", ")})` : ""}`);
  const unplaced = rooms.get(UNPLACED) ?? [];
  if (unplaced.length > 0) console.log(`  of no known file: ${unplaced.length} (${unplaced.toSorted().join(", ")})`);
}
upstream.closeAllConnections();
upstream.close();
