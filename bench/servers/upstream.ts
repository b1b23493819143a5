/**
 * A chat completions endpoint that answers every POST with the same small reply, at once or after a fixed latency, as
 * fast as node:http can. Runs in a process of its own so that it shares no event loop with what is measured.
 *
 *   node bench/servers/upstream.ts [--latency-ms=200] [--reply-bytes=1000] [--pace-ms=5] [--short-streams] [--port=0]
 *
 * A request that says `"stream":true` is answered with the events of stream.ts, each written by itself as soon as the
 * socket takes it; with `--pace-ms=n`, with those of paced.ts, one every n ms, each with the time at which it was written; with
 * `--short-streams`, with the reply as one event, all at once: some gateways request a stream where their client wants none.
 * Prints its port. `GET /stats` answers `{ requests, peak }`, and `?reset=1` zeroes both. `GET /v1/models` lists its models.
 */
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import { CATALOGUE_MODEL, MODEL } from "../load/prompts.ts";
import { pacedEvent, pacedEnd, PACED_EVENTS } from "../load/paced-events.ts";
import { shortStreamOf, streamEvents } from "../load/stream.ts";
import { listenForParent } from "./child-server.ts";

const { values } = parseArgs({
  options: {
    "latency-ms": { type: "string", default: "0" },
    "reply-bytes": { type: "string", default: "0" },
    "pace-ms": { type: "string", default: "0" },
    "short-streams": { type: "boolean", default: false },
    port: { type: "string", default: "0" },
  },
});
const latencyMs = Number(values["latency-ms"]);
const paceMs = Number(values["pace-ms"]);

const content = "One sentence that sums it up.".padEnd(Number(values["reply-bytes"]), " and more of it");
const reply = Buffer.from(
  JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: 1_763_712_000,
    model: MODEL,
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
  }),
);
const headers = { "content-type": "application/json", "content-length": reply.length };

let requests = 0;
let inFlight = 0;
let peak = 0;

const buffersOf = (texts: readonly string[]) => texts.map((text) => Buffer.from(text));
const events = buffersOf(streamEvents(false));
const eventsWithUsage = buffersOf(streamEvents(true));
const shortStream = Buffer.from(shortStreamOf(content));
const models = JSON.stringify({
  object: "list",
  data: [MODEL, CATALOGUE_MODEL].map((id) => ({ id, object: "model", created: 1_763_712_000, owned_by: "bench" })),
});

function answer(response: ServerResponse, wanted: "json" | "stream" | "stream with usage"): void {
  inFlight -= 1;
  if (wanted !== "json") {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    if (values["short-streams"]) response.end(shortStream);
    else if (paceMs > 0) writePaced(response, wanted === "stream with usage");
    else writeEvents(response, wanted === "stream" ? events : eventsWithUsage);
    return;
  }
  response.writeHead(200, headers);
  response.end(reply);
}

/** Writes events, each once the socket has taken the one before; streams take turns, event by event. */
function writeEvents(response: ServerResponse, left: readonly Buffer[], place = 0): void {
  if (place === left.length) response.end();
  else response.write(left[place], () => setImmediate(writeEvents, response, left, place + 1));
}

function writePaced(response: ServerResponse, hasUsage: boolean): void {
  let place = 0;
  const timer = setInterval(() => {
    if (place++ < PACED_EVENTS) {
      response.write(pacedEvent());
      return;
    }
    clearInterval(timer);
    response.end(pacedEnd(hasUsage));
  }, paceMs);
  response.once("close", () => clearInterval(timer));
}

const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(request.url?.endsWith("/models") === true ? models : JSON.stringify({ requests, peak }));
    if (request.url?.includes("reset=1")) requests = peak = 0;
    return;
  }
  requests += 1;
  inFlight += 1;
  if (inFlight > peak) peak = inFlight;
  // These bodies are small enough to arrive in one piece.
  let wanted: Parameters<typeof answer>[1] = "json";
  request.on("data", (piece: Buffer) => {
    const body = piece.toString("latin1");
    if (!/"stream": ?true/.test(body)) return;
    wanted = /"include_usage": ?true/.test(body) ? "stream with usage" : "stream";
  });
  request.on("end", () => {
    if (latencyMs > 0) setTimeout(answer, latencyMs, response, wanted);
    else answer(response, wanted);
  });
});
listenForParent(server, Number(values.port));
