/** `fanout cassette ls`, `show`, `export`, `load`, `clear`: tapes as the gateway has them. */
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failure } from "../failure.ts";
import { memberOf, parseJson } from "../text/json.ts";
import { countText } from "../text/amounts.ts";
import { linesOf, SENT_LINE_BYTES_MAX, textOfLine } from "../text/lines.ts";
import { printable, shellWord } from "../text/printable.ts";
import { AnyPage, Tape, TapeLine, TapePage } from "../gateway/documents.ts";
import { GATEWAY_OPTIONS, gatewayOf, json, request, type Gateway } from "../gateway/requests.ts";
import { parsed, wrong } from "../options.ts";
import { tableText } from "../text/table.ts";
import type { Surroundings } from "../command.ts";

const OPTIONS = { json: { type: "boolean", default: false }, ...GATEWAY_OPTIONS } as const;

/** Where the gateway lists the tapes that upstreams name. */
export const TAPES = "/cassettes";

export async function ls(args: string[], { env, read, stdout, signal }: Surroundings): Promise<number> {
  const { values } = parsed("cassette", args, OPTIONS);
  const reply = await json(gatewayOf(values, { env, read }, { operator: true }), TAPES, { signal });
  if (values.json) return (stdout(`${JSON.stringify(AnyPage.parse(reply).data)}\n`), 0);
  const rows = TapePage.parse(reply).data.map(({ tape, upstreams, exchanges, bytes, unrecorded, recorded_at }) => [
    tape,
    upstreams.map(({ name, mode }) => `${name}: ${mode}`).join(", "),
    exchanges,
    bytes,
    unrecorded,
    recorded_at.slice(0, 16).replace("T", " ") || "–",
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
  for await (const line of exchangesOf(gateway, tape, signal)) {
    number += 1;
    if (wanted !== undefined && wanted !== String(number)) continue;
    const exchange = parseJson(line);
    if (wanted !== undefined) return (stdout(values.json ? `${line}\n` : wholeText(exchange)), 0);
    if (values.json) stdout(`${line}\n`);
    const { endpoint, model, status, said } = headOf(TapeLine.parse(exchange));
    rows.push([number, endpoint, model, status, said]);
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
    for await (const line of exchangesOf(gateway, tape, signal)) stdout(`${line}\n`);
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
  else stderr(`${printable(tape)}: ${countText(Tape.parse(document).exchanges)} exchanges\n`);
  return 0;
}

export async function clear(args: string[], { env, read, signal }: Surroundings): Promise<number> {
  const { values, positionals } = parsed("cassette", args, OPTIONS);
  const [tape] = positionals;
  if (tape === undefined || positionals.length > 1) throw wrong("cassette", "Expected one tape.");
  await clearTape(gatewayOf(values, { env, read }, { operator: true }), tape, signal);
  return 0;
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
    for await (const line of exchangesOf(gateway, tape, signal)) {
      count += 1;
      yield `${line}\n`;
    }
  };
  await pipeline(Readable.from(counted()), createWriteStream(`${file}.part`));
  await rename(`${file}.part`, file);
  return count;
}

async function* exchangesOf(gateway: Gateway, tape: string, signal: AbortSignal): AsyncGenerator<string> {
  const response = await request(gateway, `${pathOf(tape)}/exchanges`, { signal });
  for await (const line of linesOf(response.body ?? [], SENT_LINE_BYTES_MAX)) {
    if (!line.isEnded) throw new Failure("The gateway's answer ended in the middle of an exchange. Try again.");
    yield textOfLine(line);
  }
}

function pathOf(tape: string) {
  return `${TAPES}/${encodeURIComponent(tape)}`;
}

/** The last that a request says, in one line, and its answer's status. */
function headOf({ request, cut, answer: { status } }: TapeLine) {
  const said = cut === undefined ? lastText(messagesIn(request.body)) : cut.text;
  const model = printable(request.model || (cut?.model ?? ""));
  return { endpoint: request.endpoint || "–", model, status, said: printable(said).slice(0, 70) };
}

/** The messages or the input of a request; otherwise the whole of it. */
function messagesIn(body: unknown): unknown {
  return memberOf(body, "messages") ?? memberOf(body, "input") ?? body;
}

function lastText(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return lastText(value.at(-1));
  const content = memberOf(value, "content") ?? memberOf(value, "text") ?? memberOf(value, "prompt");
  return content === undefined ? JSON.stringify(value ?? null) : lastText(content);
}

function wholeText(exchange: unknown) {
  const { answer } = TapeLine.parse(exchange);
  const shown = memberOf(exchange, "request") ?? memberOf(exchange, "cut");
  const lines = `${JSON.stringify(shown, null, 2)}\n\n${answer.status}\n${answer.chunks.join("")}`;
  // A model could write what moves the cursor of a terminal.
  return `${lines
    .split("\n")
    .map((line) => line.replace(/[\p{Cc}\p{Cf}]/gu, ""))
    .join("\n")}\n`;
}
