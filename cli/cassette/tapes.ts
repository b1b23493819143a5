/** `fanout cassette ls`, `show`, `export`, `load`, `clear`: tapes as the gateway has them. */
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failure } from "../failure.ts";
import { memberOf, parseJson } from "../text/json.ts";
import { countText } from "../text/amounts.ts";
import { printable, shellWord } from "../text/printable.ts";
import { GATEWAY_OPTIONS, gatewayOf, json, request, type Gateway } from "../gateway/requests.ts";
import { parsed, wrong } from "../options.ts";
import { listAt, numberAt, tableText, textAt } from "../text/table.ts";
import type { Surroundings } from "../command.ts";

const OPTIONS = { json: { type: "boolean", default: false }, ...GATEWAY_OPTIONS } as const;

export async function ls(args: string[], { env, read, stdout, signal }: Surroundings): Promise<number> {
  const { values } = parsed("cassette", args, OPTIONS);
  const list = await tapesAt(gatewayOf(values, { env, read }, { operator: true }), signal);
  if (values.json) return (stdout(`${JSON.stringify(list)}\n`), 0);
  const rows = list.map((tape) => [
    textAt(tape, "tape"),
    listAt(tape, "upstreams")
      .map((upstream) => `${textAt(upstream, "name")}: ${textAt(upstream, "mode")}`)
      .join(", "),
    numberAt(tape, "exchanges"),
    numberAt(tape, "bytes"),
    numberAt(tape, "unrecorded"),
    textAt(tape, "recorded_at").slice(0, 16).replace("T", " ") || "–",
  ]);
  stdout(tableText(["tape", "upstreams", "exchanges", "bytes", "unrecorded", "recorded"], rows));
  return 0;
}

export async function show(args: string[], { env, read, stdout, signal }: Surroundings): Promise<number> {
  const { values, positionals } = parsed("cassette", args, OPTIONS);
  const [tape, wanted] = positionals;
  if (tape === undefined || positionals.length > 2)
    throw wrong("cassette", "Expected a tape, and optionally the number of an exchange.");
  const gateway = gatewayOf(values, { env, read }, { operator: true });
  let number = 0;
  const rows: (string | number)[][] = [];
  for await (const line of linesOf(gateway, tape, signal)) {
    number += 1;
    if (wanted !== undefined && wanted !== String(number)) continue;
    const exchange = parseJson(line);
    if (wanted !== undefined) return (stdout(values.json ? `${line}\n` : wholeText(exchange)), 0);
    if (values.json) stdout(`${line}\n`);
    const { endpoint, model, said } = headOf(exchange);
    rows.push([number, endpoint, model, numberAt(exchange, "answer", "status"), said]);
  }
  if (wanted !== undefined)
    throw new Failure(`${printable(tape)} has no exchange ${printable(wanted)}: it has ${number}.`);
  if (!values.json) stdout(tableText(["number", "endpoint", "model", "status", "request"], rows));
  return 0;
}

export async function exported(args: string[], { env, read, stdout, stderr, signal }: Surroundings): Promise<number> {
  const { values, positionals } = parsed("cassette", args, { ...OPTIONS, output: { type: "string", short: "o" } });
  const [tape] = positionals;
  if (tape === undefined || positionals.length > 1) throw wrong("cassette", "Expected one tape.");
  const gateway = gatewayOf(values, { env, read }, { operator: true });
  if (values.output === "-") {
    for await (const line of linesOf(gateway, tape, signal)) stdout(`${line}\n`);
    return 0;
  }
  const file = values.output ?? `${tape}.jsonl`;
  const count = await saveTape(gateway, tape, file, signal);
  if (values.json) stdout(`${JSON.stringify({ tape, file, exchanges: count })}\n`);
  else stderr(`${shellWord(file)}: ${countText(count)} exchanges\n`);
  return 0;
}

export async function load(args: string[], { env, read, stdout, stderr, signal }: Surroundings): Promise<number> {
  const { values, positionals } = parsed("cassette", args, OPTIONS);
  const [file, tape] = positionals;
  if (file === undefined || tape === undefined || positionals.length > 2)
    throw wrong("cassette", "Expected a file and a tape.");
  const document = await loadTape(gatewayOf(values, { env, read }, { operator: true }), tape, file, signal);
  if (values.json) stdout(`${JSON.stringify(document)}\n`);
  else stderr(`${printable(tape)}: ${countText(numberAt(document, "exchanges"))} exchanges\n`);
  return 0;
}

export async function clear(args: string[], { env, read, signal }: Surroundings): Promise<number> {
  const { values, positionals } = parsed("cassette", args, OPTIONS);
  const [tape] = positionals;
  if (tape === undefined || positionals.length > 1) throw wrong("cassette", "Expected one tape.");
  await clearTape(gatewayOf(values, { env, read }, { operator: true }), tape, signal);
  return 0;
}

/** The tapes that upstreams name. */
export async function tapesAt(gateway: Gateway, signal: AbortSignal): Promise<unknown[]> {
  return listAt(await json(gateway, "/cassettes", { signal }), "data");
}

export async function clearTape(gateway: Gateway, tape: string, signal: AbortSignal): Promise<void> {
  await json(gateway, pathOf(tape), { method: "DELETE", signal });
}

/** Replaces a tape by a file. */
export async function loadTape(gateway: Gateway, tape: string, file: string, signal: AbortSignal): Promise<object> {
  if (!existsSync(file)) throw new Failure(`No such file: ${shellWord(file)}.`);
  const body = Buffer.concat(await createReadStream(file).toArray()).toString("utf8");
  return await json(gateway, pathOf(tape), { method: "PUT", lines: body, signal });
}

/** Saves a tape: the file is whole, or stays what it was. Resolves with the number of exchanges. */
export async function saveTape(gateway: Gateway, tape: string, file: string, signal: AbortSignal): Promise<number> {
  let count = 0;
  const counted = async function* () {
    for await (const line of linesOf(gateway, tape, signal)) {
      count += 1;
      yield `${line}\n`;
    }
  };
  await pipeline(Readable.from(counted()), createWriteStream(`${file}.part`));
  await rename(`${file}.part`, file);
  return count;
}

async function* linesOf(gateway: Gateway, tape: string, signal: AbortSignal) {
  const response = await request(gateway, `${pathOf(tape)}/exchanges`, { signal });
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") throw new Failure("The gateway's answer ended in the middle of an exchange. Try again.");
}

function pathOf(tape: string) {
  return `/cassettes/${encodeURIComponent(tape)}`;
}

/** The last that a request says, in one line. */
function headOf(exchange: unknown) {
  const cut = memberOf(exchange, "cut");
  const request = memberOf(exchange, "request");
  const body = memberOf(request, "body");
  const said =
    cut === undefined ? lastText(memberOf(body, "messages") ?? memberOf(body, "input") ?? body) : textAt(cut, "text");
  const model = textAt(request, "model") || textAt(cut, "model");
  return { endpoint: textAt(request, "endpoint") || "–", model: printable(model), said: printable(said).slice(0, 70) };
}

function lastText(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return lastText(value.at(-1));
  const content = memberOf(value, "content") ?? memberOf(value, "text") ?? memberOf(value, "prompt");
  return content === undefined ? JSON.stringify(value ?? null) : lastText(content);
}

function wholeText(exchange: unknown) {
  const answer = memberOf(exchange, "answer");
  const shown = memberOf(exchange, "request") ?? memberOf(exchange, "cut");
  const lines = `${JSON.stringify(shown, null, 2)}\n\n${numberAt(answer, "status")}\n${listAt(answer, "chunks").join("")}`;
  // A model could write what moves the cursor of a terminal.
  return `${lines
    .split("\n")
    .map((line) => line.replace(/[\p{Cc}\p{Cf}]/gu, ""))
    .join("\n")}\n`;
}
