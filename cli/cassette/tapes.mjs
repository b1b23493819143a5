/** `fanout cassette ls`, `show`, `export`, `load`, `clear`: tapes as the gateway has them. */
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Failure } from "../failure.mjs";
import { memberOf, parseJson } from "../text/json.mjs";
import { countText } from "../batch/progress.mjs";
import { printable, shellWord } from "../text/printable.mjs";
import { GATEWAY_OPTIONS, gatewayOf, json, request } from "../gateway/requests.mjs";
import { parsed, wrong } from "../options.mjs";
import { listAt, numberAt, tableText, textAt } from "../text/table.mjs";

const OPTIONS = /** @type {const} */ ({ json: { type: "boolean", default: false }, ...GATEWAY_OPTIONS });

/** @type {import("../commands.mjs").Command} */
export async function ls(args, { env, read, stdout, signal }) {
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

/** @type {import("../commands.mjs").Command} */
export async function show(args, { env, read, stdout, signal }) {
  const { values, positionals } = parsed("cassette", args, OPTIONS);
  const [tape, wanted] = positionals;
  if (tape === undefined || positionals.length > 2)
    throw wrong("cassette", "Expected a tape, and optionally the number of an exchange.");
  const gateway = gatewayOf(values, { env, read }, { operator: true });
  let number = 0;
  /** @type {(string | number)[][]} */
  const rows = [];
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

/** @type {import("../commands.mjs").Command} */
export async function exported(args, { env, read, stdout, stderr, signal }) {
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

/** @type {import("../commands.mjs").Command} */
export async function load(args, { env, read, stdout, stderr, signal }) {
  const { values, positionals } = parsed("cassette", args, OPTIONS);
  const [file, tape] = positionals;
  if (file === undefined || tape === undefined || positionals.length > 2)
    throw wrong("cassette", "Expected a file and a tape.");
  const document = await loadTape(gatewayOf(values, { env, read }, { operator: true }), tape, file, signal);
  if (values.json) stdout(`${JSON.stringify(document)}\n`);
  else stderr(`${printable(tape)}: ${countText(numberAt(document, "exchanges"))} exchanges\n`);
  return 0;
}

/** @type {import("../commands.mjs").Command} */
export async function clear(args, { env, read, signal }) {
  const { values, positionals } = parsed("cassette", args, OPTIONS);
  const [tape] = positionals;
  if (tape === undefined || positionals.length > 1) throw wrong("cassette", "Expected one tape.");
  await clearTape(gatewayOf(values, { env, read }, { operator: true }), tape, signal);
  return 0;
}

/** @typedef {import("../gateway/requests.mjs").Gateway} Gateway */

/** The tapes that upstreams name. @param {Gateway} gateway @param {AbortSignal} signal */
export async function tapesAt(gateway, signal) {
  return listAt(await json(gateway, "/cassettes", { signal }), "data");
}

/** @param {Gateway} gateway @param {string} tape @param {AbortSignal} signal */
export async function clearTape(gateway, tape, signal) {
  await json(gateway, pathOf(tape), { method: "DELETE", signal });
}

/** Replaces a tape by a file. @param {Gateway} gateway @param {string} tape @param {string} file @param {AbortSignal} signal */
export async function loadTape(gateway, tape, file, signal) {
  if (!existsSync(file)) throw new Failure(`No such file: ${shellWord(file)}.`);
  const body = Buffer.concat(await createReadStream(file).toArray()).toString("utf8");
  return await json(gateway, pathOf(tape), { method: "PUT", lines: body, signal });
}

/**
 * Saves a tape: the file is whole, or stays what it was. Resolves with the number of exchanges.
 * @param {Gateway} gateway @param {string} tape @param {string} file @param {AbortSignal} signal
 */
export async function saveTape(gateway, tape, file, signal) {
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

/** @param {Gateway} gateway @param {string} tape @param {AbortSignal} signal */
async function* linesOf(gateway, tape, signal) {
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

/** @param {string} tape */
function pathOf(tape) {
  return `/cassettes/${encodeURIComponent(tape)}`;
}

/** The last that a request says, in one line. @param {unknown} exchange */
function headOf(exchange) {
  const cut = memberOf(exchange, "cut");
  const request = memberOf(exchange, "request");
  const body = memberOf(request, "body");
  const said =
    cut === undefined ? lastText(memberOf(body, "messages") ?? memberOf(body, "input") ?? body) : textAt(cut, "text");
  const model = textAt(request, "model") || textAt(cut, "model");
  return { endpoint: textAt(request, "endpoint") || "–", model: printable(model), said: printable(said).slice(0, 70) };
}

/** @param {unknown} value @returns {string} */
function lastText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return lastText(value.at(-1));
  const content = memberOf(value, "content") ?? memberOf(value, "text") ?? memberOf(value, "prompt");
  return content === undefined ? JSON.stringify(value ?? null) : lastText(content);
}

/** @param {unknown} exchange */
function wholeText(exchange) {
  const answer = memberOf(exchange, "answer");
  const shown = memberOf(exchange, "request") ?? memberOf(exchange, "cut");
  const lines = `${JSON.stringify(shown, null, 2)}\n\n${numberAt(answer, "status")}\n${listAt(answer, "chunks").join("")}`;
  // A model could write what moves the cursor of a terminal.
  return `${lines
    .split("\n")
    .map((line) => line.replace(/[\p{Cc}\p{Cf}]/gu, ""))
    .join("\n")}\n`;
}
