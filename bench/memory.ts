/**
 * `node bench/memory.ts [--live] [--width=48] [--slots=10000] [--bytes=2048]`: what a batch of so many slots, with prompts
 * of so many bytes and 1 KB results, holds in memory while it runs and after, and whether a slot of it costs more time than a
 * slot of a batch of 1,000.
 * `--live` collects garbage before every sample, so that the peak is live memory; its times are meaningless.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { sendBatch } from "./load/fan-outs.ts";
import { watchHeap } from "./servers/heap.ts";
import { machine, writeResult } from "./results.ts";
import { openRun, startGateway, startUpstream } from "./servers/servers.ts";
import { median } from "./stats.ts";
import { against } from "./suite.ts";
import { tableOf } from "./table.ts";

const SLOTS_SMALL = 1_000;
const REPLY_BYTES = 1_024;
/** workerd lets go of an object that was idle for 10 s. */
const IDLE_MS = 12_000;

const { values } = parseArgs({
  options: {
    live: { type: "boolean", default: false },
    width: { type: "string", default: "48" },
    slots: { type: "string", default: "10000" },
    bytes: { type: "string", default: "2048" },
  },
});
const width = Number(values.width);
const slots = Number(values.slots);
const promptBytes = Number(values.bytes);

await using upstream = await startUpstream({ replyBytes: REPLY_BYTES });
await using gateway = await startGateway(upstream, { inspector: true });
using heap = await watchHeap(gateway);

// Every batch opens its own run, so that each finds the same empty objects.
const batchMs = async (n: number) => await sendBatch(gateway, await openRun(gateway), { n, width, promptBytes });

for (let turn = 0; turn < 3; turn++) await batchMs(SLOTS_SMALL);
const smallWallsMs: number[] = [];
await heap.peakDuring(
  async () => {
    for (let turn = 0; turn < 5; turn++) smallWallsMs.push(await batchMs(SLOTS_SMALL));
  },
  { live: false },
);
const beforeBytes = await heap.heldBytes();
let wallMs = 0;
const peak = await heap.peakDuring(async () => void (wallMs = await batchMs(slots)), { live: values.live });
const endedBytes = await heap.heldBytes();
await sleep(IDLE_MS);
const afterBytes = await heap.heldBytes();

const slotUs = (wallMs / slots) * 1_000;
const smallSlotUs = (median(smallWallsMs) / SLOTS_SMALL) * 1_000;
const mb = (bytes: number) => (bytes / 1e6).toFixed(1);
const table = [
  { what: "live heap before, MB", figure: mb(beforeBytes) },
  {
    what: values.live ? "peak of the live heap, MB" : "heap peak, garbage included, MB",
    figure: against(peak.heapBytes / 1e6, "<=", 64),
  },
  { what: "array buffers at most, MB", figure: mb(peak.backingBytes) },
  { what: "resident memory at most, MB", figure: mb(peak.rssBytes) },
  { what: "live heap at the end, MB", figure: mb(endedBytes) },
  { what: `live heap ${IDLE_MS / 1_000} s later, MB`, figure: against(afterBytes / 1e6, "<=", 10) },
  { what: `time per slot at ${SLOTS_SMALL}, µs`, figure: smallSlotUs.toFixed(0) },
  { what: `time per slot at ${slots}, µs`, figure: slotUs.toFixed(0) },
  { what: "ratio of the two", figure: values.live ? "not measured" : against(slotUs / smallSlotUs, "<=", 1.3) },
];
console.log(`${slots} slots, prompts of ${promptBytes} bytes, results of ${REPLY_BYTES}, width ${width}\n`);
console.log(`${tableOf(table)}\n`);
const raw = {
  machine: machine(),
  width,
  slots,
  promptBytes,
  live: values.live,
  beforeBytes,
  peak,
  endedBytes,
  afterBytes,
  wallMs,
  smallWallsMs,
};
console.log(`raw figures: ${writeResult("memory.json", JSON.stringify({ table, ...raw }, null, 2))}`);
