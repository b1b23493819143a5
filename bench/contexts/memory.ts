/**
 * Memory: 1,000 questions about one text of 500 KB, and one prompt over 10,000 chunks of a text of 100 MB; beside them as many prompts
 * without any text, whose garbage is that of the calls. The provider takes requests as they come, and answers after a while, so that many
 * are on their way at once. The heap is the isolate's of Worker and objects.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { startInspected, type InspectedGateway } from "../batch-api/inspected.ts";
import { atMost, exact, plain, type Row } from "../parts/row.ts";
import { watchHeap, type Heap, type HeapPeak } from "../servers/heap.ts";

const LATENCY_MS = 250;
const ISOLATE_MB_MAX = 64;
const WIDTH = 512;
const LINE = "Here are some of the words of a long document, and this is where its line ends.\n";

/** `bytes` of the text; 0 = there is none. */
type Shape = { name: string; bytes: number; calls: number; body: (context: string) => object };

const questions = (count: number): string[] => Array.from({ length: count }, (_, at) => `Question ${at}?`);

const SHAPES: readonly Shape[] = [
  {
    name: "500 KB × 1,000 questions",
    bytes: 500_000,
    calls: 1_000,
    body: (context) => ({ context, prompts: questions(1_000) }),
  },
  {
    name: "100 MB × 10,000 chunks",
    bytes: 100_000_000,
    calls: 10_000,
    body: (context) => ({ over: { context, split: { size: 10_000 } }, prompt: "Summarise: {{chunk}}" }),
  },
  { name: "no text, 10,000 questions", bytes: 0, calls: 10_000, body: () => ({ prompts: questions(10_000) }) },
];

export async function measureMemory(): Promise<Row[]> {
  const provider = await startSink();
  await using gateway = await startInspected(provider);
  using heap = await watchHeap(gateway);
  const rows: Row[] = [];
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const sum = ({ heapBytes, backingBytes }: HeapPeak): number => heapBytes + backingBytes;
  for (const shape of SHAPES) {
    const { name, calls } = shape;
    const before = provider.requests();
    // What the isolate needs, and beside it what it takes where nothing makes it collect.
    const live = await peakOf(gateway, heap, shape, true);
    const sent = provider.requests() - before;
    const lazy = await peakOf(gateway, heap, shape, false);
    rows.push(
      exact(`${name}: calls`, String(sent), `= ${calls}`, sent === calls),
      atMost(`${name}: live heap and array buffers at most`, sum(live) / 1e6, ISOLATE_MB_MAX, " MB"),
      plain(`${name}: the same with garbage, locally`, `${mb(sum(lazy))} in ${lazy.samples} samples`),
      plain(`${name}: live heap afterwards`, mb(await heap.heldBytes())),
    );
  }
  await provider.stop();
  return rows;
}

async function peakOf(gateway: InspectedGateway, heap: Heap, { bytes, body }: Shape, live: boolean): Promise<HeapPeak> {
  const { token } = await gateway.openRun(WIDTH);
  const authorization = `Bearer ${token}`;
  const text = LINE.repeat(Math.ceil(bytes / LINE.length)).slice(0, bytes);
  const store = async (): Promise<string> => {
    const headers = { authorization, "content-type": "text/plain" };
    const stored = await fetch(`${gateway.url}/contexts`, { method: "POST", headers, body: text });
    return z.object({ id: z.string() }).parse(await stored.json()).id;
  };
  return await heap.peakDuring(
    async () => {
      const asked = bytes === 0 ? body("") : { ...body(await store()), cache: "off" };
      const json = { ...asked, max_tokens: 16 };
      const init = {
        method: "POST",
        headers: { authorization, "content-type": "application/json", accept: "application/x-ndjson" },
      };
      const answer = await fetch(`${gateway.url}/batch`, { ...init, body: JSON.stringify(json) });
      const last = (await answer.text()).trimEnd().split("\n").at(-1) ?? "";
      z.looseObject({ type: z.literal("group_completed"), status: z.literal("completed") }).parse(JSON.parse(last));
    },
    { live },
  );
}

/** A provider that keeps nothing of what it reads. */
async function startSink() {
  let requests = 0;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for await (const _ of request);
    requests += 1;
    const usage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 };
    const choices = [{ index: 0, message: { role: "assistant", content: "Fine." }, finish_reason: "stop" }];
    setTimeout(() => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "c", model: "m", choices, usage }));
    }, LATENCY_MS);
  };
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0, backlog: 4_096 }, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests: () => requests,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
