/**
 * The same program as map_reduce.py, for machines without python3. Needs Node 20 or newer and no packages.
 *
 *     FANOUT_URL=… FANOUT_TOKEN=… node examples/map_reduce.mjs [text file]
 */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const URL_BASE = (process.env.FANOUT_URL || "http://127.0.0.1:8787").replace(/\/+$/, "");
const TOKEN = process.env.FANOUT_TOKEN;
// 200 ms per answer, so that the progress of the simulated calls is visible.
const MODEL = process.env.FANOUT_MODEL || "sim/names?ms=200";
const WORDS = ["red", "orange", "yellow", "green", "blue", "indigo", "violet", "purple", "white", "black"];
const CHUNKS = 100;
const WIDTH = 32;
const BAR = 40;
const CALL = { model: MODEL, max_tokens: 400, temperature: 0 };

const mapPrompt = (text) =>
  `Count how often each of the words occurs in the text, in upper or lower case. Answer with one line per word, as \`word: n\`, nothing else.
Words: ${WORDS.join(", ")}
Text:
${text}`;
const reducePrompt = (counts) =>
  `Below are counts of words, from many parts of one book. Add them up, word by word. Answer with one line per word, as \`word: n\`, nothing else.

${counts.join("\n")}`;

/** Splits the text into about `count` pieces of similar size, only between paragraphs. */
function chunksOf(text, count) {
  const pieces = [];
  let piece = "";
  for (const paragraph of text.split(/\n\s*\n/)) {
    if (piece && piece.length + paragraph.length / 2 > text.length / count) {
      pieces.push(piece);
      piece = "";
    }
    piece += (piece ? "\n\n" : "") + paragraph;
  }
  return piece ? [...pieces, piece] : pieces;
}

/** Sends one request to the gateway; a refusal is thrown with its message and code. */
async function ask(path, body, accept = "application/json") {
  if (!TOKEN) throw new Error("FANOUT_TOKEN is not set: it carries the token that POST /runs answers with");
  const headers = { authorization: `Bearer ${TOKEN}`, accept, "content-type": "application/json" };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const reply = await fetch(URL_BASE + path, { ...init, redirect: "error" }).catch(({ message, cause }) => {
    throw new Error(`no answer from the gateway at ${URL_BASE}: ${cause?.message || cause?.code || message}`);
  });
  if (reply.ok) return reply;
  const text = await reply.text();
  throw refusal(text, reply.status);
}

function refusal(text, status) {
  try {
    const { error } = JSON.parse(text);
    return new Error(`${error.message} (${error.code})`);
  } catch {
    return new Error(`the gateway answered ${status}: ${text.slice(0, 200)}`);
  }
}

/** The JSON lines of a body, as they arrive. */
async function* linesOf(body) {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim()) yield JSON.parse(line);
  }
  if (rest.trim()) yield JSON.parse(rest);
}

/** A bar redrawn in place on a terminal, a line for each tenth elsewhere. */
function showProgress(done, failed, total) {
  const note = failed ? `, ${failed} failed` : "";
  if (process.stdout.isTTY) {
    const filled = Math.floor((BAR * done) / total);
    const bar = "█".repeat(filled) + "·".repeat(BAR - filled);
    process.stdout.write(`\r  [${bar}] ${done}/${total}${note}${done === total ? "\n" : ""}`);
  } else if (Math.floor((done * 10) / total) > Math.floor(((done - 1) * 10) / total)) {
    console.log(`  ${done}/${total} sub-calls ended${note}`);
  }
}

function showGroup({ metrics, usage }, seconds) {
  console.log(`✓ Parallel Execution Complete (${seconds.toFixed(2)}s)`);
  console.log(
    `  one after another: ${(metrics.sequential_ms / 1000).toFixed(2)}s · speed-up ${(metrics.speedup ?? 1).toFixed(1)}x` +
      ` · ${metrics.peak_parallel} at once at the peak · $${usage.cost.toFixed(6)}`,
  );
}

/** The answers by index (null where a slot failed), shown while they arrive. */
async function fanOut(prompts) {
  const answers = prompts.map(() => null);
  const started = performance.now();
  let [done, failed, group, last] = [0, 0, null, null];
  const reply = await ask("/batch", { prompts, ...CALL, concurrency: WIDTH }, "application/x-ndjson");
  for await (const event of linesOf(reply.body)) {
    last = event.type;
    if (event.type === undefined || event.type === "error") throw refusal(JSON.stringify(event), reply.status);
    if (group === null) {
      group = event.parallel_group_id;
      console.log(`⚡ Parallel Execution Started: ${prompts.length} sub-calls in group ${group}`);
    }
    if (event.type === "slot") {
      done += 1;
      if (event.error && failed++ === 0) console.error(`! slot ${event.index}: ${event.error.message}`);
      if (!event.error) answers[event.index] = event.result;
      showProgress(done, failed, prompts.length);
    }
    if (event.type === "group_completed") showGroup(event, (performance.now() - started) / 1000);
  }
  if (last !== "group_completed") throw new Error("the answer ended before its group_completed line");
  return answers;
}

async function main() {
  const path = process.argv[2] ?? fileURLToPath(new URL("data/opticks.txt", import.meta.url));
  const text = await readFile(path, "utf8");
  const pieces = chunksOf(text, CHUNKS);
  const size = text.length.toLocaleString("en");
  console.log(`${basename(path)}: ${size} characters in ${pieces.length} chunks, model ${MODEL}`);
  const answers = await fanOut(pieces.map(mapPrompt));
  const counts = answers.filter(Boolean).map((answer) => answer.trim());
  const missing = pieces.length - counts.length;
  if (missing > 0) console.error(`! ${missing} of ${pieces.length} chunks are missing from the sums`);
  if (counts.length === 0) return 1;
  const reduced = await (await ask("/query", { prompt: reducePrompt(counts), ...CALL })).json();
  const sums = new Map();
  for (const [, word, n] of reduced.text.matchAll(/(\w+)\W*: *(\d+)/g)) sums.set(word.toLowerCase(), Number(n));
  if (sums.size === 0) console.error(`! ${MODEL} answered without any counts`);
  const countOf = (word) => sums.get(word) ?? 0;
  console.log("\nColour words in the book");
  for (const word of [...WORDS].sort((a, b) => countOf(b) - countOf(a))) {
    console.log(`  ${word.padEnd(8)}${String(countOf(word)).padStart(6)}`);
  }
  const { usd } = (await (await ask("/run")).json()).budget;
  // Two decimals at least: 0.25, 0.002.
  const limit = usd.limit === null ? "" : ` of $${usd.limit.toFixed(6).replace(/0{1,4}$/, "")}`;
  console.log(`\nSpent $${usd.spent.toFixed(6)}${limit} in all, for ${pieces.length + 1} calls`);
  return missing === 0 && sums.size > 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
