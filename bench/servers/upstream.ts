/**
 * A chat completions endpoint that answers every POST with the same small reply, at once or after a fixed latency, as
 * fast as node:http can. Runs in a process of its own so that it shares no event loop with what is measured.
 *
 *   node bench/servers/upstream.ts [--latency-ms=200] [--reply-bytes=1000]
 *
 * A request that says `"stream":true` is answered with the events of stream.ts, each written by itself as soon as the
 * socket takes it.
 * Prints its port. `GET /stats` answers `{ requests, peak }`, and `?reset=1` zeroes both.
 */
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import { MODEL } from "../load/prompts.ts";
import { streamEvents } from "../load/stream.ts";

const { values } = parseArgs({
  options: { "latency-ms": { type: "string", default: "0" }, "reply-bytes": { type: "string", default: "0" } },
});
const latencyMs = Number(values["latency-ms"]);

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

const events = streamEvents().map((text) => Buffer.from(text));

function answer(response: ServerResponse, stream: boolean): void {
  inFlight -= 1;
  if (stream) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    writeEvents(response, 0);
    return;
  }
  response.writeHead(200, headers);
  response.end(reply);
}

/** Writes the events from `place` on, each once the socket has taken the one before; streams take turns, event by event. */
function writeEvents(response: ServerResponse, place: number): void {
  if (place === events.length) response.end();
  else response.write(events[place], () => setImmediate(writeEvents, response, place + 1));
}

const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ requests, peak }));
    if (request.url?.includes("reset=1")) requests = peak = 0;
    return;
  }
  requests += 1;
  inFlight += 1;
  if (inFlight > peak) peak = inFlight;
  // These bodies are small enough to arrive in one piece.
  let stream = false;
  request.on("data", (piece: Buffer) => (stream ||= piece.includes('"stream":true')));
  request.on("end", () => {
    if (latencyMs > 0) setTimeout(answer, latencyMs, response, stream);
    else answer(response, stream);
  });
});
// Connections that idle between two rounds stay open: a reset one would be measured as the gateway's failure.
server.keepAliveTimeout = 300_000;
server.listen(0, "127.0.0.1", 2_048, () => {
  const address = server.address();
  if (address !== null && typeof address === "object") process.stdout.write(`${address.port}\n`);
});
// The parent's end of stdin closes with the parent, however it dies.
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
