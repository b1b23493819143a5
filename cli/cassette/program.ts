/** `fanout cassette record` and `replay`: a program at an upstream with a tape, from the first call to the file. */
import { spawn } from "node:child_process";
import { basename } from "node:path";
import { Failure } from "../failure.ts";
import { parseJson } from "../text/json.ts";
import { countText, usdText } from "../text/amounts.ts";
import { printable, shellWord } from "../text/printable.ts";
import { LogEvent, Opened, Run, Tape, TapePage } from "../gateway/documents.ts";
import { GATEWAY_OPTIONS, gatewayOf, json, request, type Gateway } from "../gateway/requests.ts";
import { amountOf, parsed, wrong } from "../options.ts";
import { clearTape, loadTape, saveTape, TAPES } from "./tapes.ts";
import type { Surroundings } from "../command.ts";

export async function record(args: string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr, signal } = surroundings;
  const asked = askedOf("record", args);
  if (asked.usd === null)
    throw wrong("cassette", "Set a budget, such as --budget 2.00: recording makes real calls, which cost money.");
  const gateway = gatewayOf(asked.gateway, surroundings, { operator: true });
  const { tape, mode } = await chosen(gateway, asked, ["record", "hybrid"], signal);
  if (mode === "record") await clearTape(gateway, tape, signal);
  const ended = await underRun(gateway, asked, surroundings);
  const count = await saveTape(gateway, tape, asked.file, signal);
  const facts = { tape, file: asked.file, exchanges: count, run: ended.run, cost_usd: ended.usd, status: ended.status };
  if (asked.json) stdout(`${JSON.stringify(facts)}\n`);
  else stderr(`${shellWord(asked.file)}: ${countText(count)} exchanges · ${usdText(ended.usd)} · ${ended.run}\n`);
  return ended.status;
}

export async function replay(args: string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr, signal } = surroundings;
  const asked = askedOf("replay", args);
  const gateway = gatewayOf(asked.gateway, surroundings, { operator: true });
  const { tape } = await chosen(gateway, asked, ["replay"], signal);
  await loadTape(gateway, tape, asked.file, signal);
  const ended = await underRun(gateway, asked, surroundings);
  const misses = await missesOf(gateway, ended.run, signal);
  const last = misses === 0 ? [] : Tape.parse(await json(gateway, `/cassettes/${tape}`, { signal })).last_misses;
  const status = ended.status === 0 && misses > 0 ? 1 : ended.status;
  const facts = { tape, file: asked.file, calls: ended.calls, misses, run: ended.run, status };
  if (asked.json) stdout(`${JSON.stringify(facts)}\n`);
  else {
    for (const miss of last) stderr(`✗ ${printable(String(miss))}\n`);
    stderr(`${countText(ended.calls)} calls · ${countText(misses)} not on the tape · ${ended.run}\n`);
  }
  return status;
}

export type Asked = {
  file: string;
  program: string;
  words: string[];
  usd: number | null;
  json: boolean;
  gateway: Parameters<typeof gatewayOf>[0];
  upstream: string | undefined;
  model: string | undefined;
};

function askedOf(name: string, args: string[]): Asked {
  const dashes = args.indexOf("--");
  const { values, positionals } = parsed("cassette", dashes === -1 ? args : args.slice(0, dashes), {
    upstream: { type: "string" },
    model: { type: "string" },
    budget: { type: "string" },
    json: { type: "boolean", default: false },
    ...GATEWAY_OPTIONS,
  });
  const [file] = positionals;
  const [program, ...words] = dashes === -1 ? [] : args.slice(dashes + 1);
  if (file === undefined || positionals.length > 1 || program === undefined)
    throw wrong("cassette", `Expected a file and a program: fanout cassette ${name} FILE -- PROGRAM.`);
  const { upstream, model, json: isJson, budget } = values;
  const usd = amountOf("cassette", "budget", budget);
  return { file, program, words, usd, json: isJson, gateway: values, upstream, model };
}

/** The tape to use: of the upstream that is named, or of the only one with a fitting mode. */
async function chosen(gateway: Gateway, { upstream: named }: Asked, modes: readonly string[], signal: AbortSignal) {
  const tapes = TapePage.parse(await json(gateway, TAPES, { signal })).data;
  const all = tapes.flatMap(({ tape, upstreams }) => upstreams.map((upstream) => ({ tape, ...upstream })));
  const fitting = all.filter(({ name, mode }) => modes.includes(mode) && (named === undefined || name === named));
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return only;
  const mode = modes.join(" or ");
  if (fitting.length > 1)
    throw new Failure(
      `Several upstreams have the mode ${mode}. Choose one: --upstream ${fitting.map(({ name }) => name).join(", ")}.`,
    );
  const known = all.map(({ name, mode: own }) => `${name}: ${own}`).join(", ");
  throw new Failure(
    `UPSTREAMS has no upstream${named === undefined ? "" : ` ${printable(named)}`} of the kind cassette with the mode ${mode}.${known === "" ? "" : ` It has ${known}.`}`,
  );
}

/** Runs the program under a run of its own, and closes that, so that all of its calls have ended. */
async function underRun(gateway: Gateway, { file, program, words, usd, model }: Asked, { env, signal }: Surroundings) {
  const fields = {
    name: basename(file).slice(0, 100),
    ...(usd === null ? {} : { budget: { usd } }),
    ...(model === undefined ? {} : { default_model: model }),
  };
  const { id: run, token } = Opened.parse(await json(gateway, "/runs", { json: fields, signal }));
  const own = { ...env };
  // The program may be anybody's: it has its run, and no more.
  delete own["ADMIN_KEY"];
  const places = { FANOUT_URL: gateway.url, OPENAI_BASE_URL: `${gateway.url}/v1`, ANTHROPIC_BASE_URL: gateway.url };
  const tokens = { FANOUT_TOKEN: token, OPENAI_API_KEY: token, ANTHROPIC_API_KEY: token };
  const child = spawn(program, words, { env: { ...own, ...places, ...tokens }, stdio: "inherit" });
  const stop = () => void child.kill("SIGTERM");
  signal.addEventListener("abort", stop);
  const status = await new Promise<number>((resolve, reject) => {
    child.once("error", (error) =>
      reject(new Failure(`Cannot start ${shellWord(program)}: ${printable(error.message)}.`)),
    );
    child.once("exit", (code) => resolve(code ?? 1));
  }).finally(() => json(gateway, `/runs/${run}/close`, { method: "POST" }).catch(() => undefined));
  const { stats, budget } = Run.parse(await json(gateway, `/runs/${run}`));
  return { run, status, calls: stats.total_queries, usd: budget.usd.spent };
}

/** Number of the run's calls that were not on the tape, from its log. */
async function missesOf(gateway: Gateway, run: string, signal: AbortSignal) {
  const response = await request(gateway, `/runs/${run}/log`, { signal, headers: { accept: "application/x-ndjson" } });
  const events = (await response.text()).split("\n").filter((line) => line.includes('"cassette_miss"'));
  return events.filter((line) => LogEvent.parse(parseJson(line)).event_type === "attempt_ended").length;
}
