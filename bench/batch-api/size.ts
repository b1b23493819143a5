/** Size: the largest batch that OpenAI's limits allow, its memory, and its time per line against smaller ones. */
import { watchHeap } from "../servers/heap.ts";
import { median } from "../stats.ts";
import { audit } from "./audit.ts";
import { timed, upload, writeInput } from "./batch.ts";
import { startInspected, type InspectedGateway } from "./inspected.ts";
import { atMost, exact, plain, type Part } from "../parts/row.ts";
import { startProvider, statsOf } from "./world.ts";

export type SizePlan = { lines: number; lineBytes: number; smaller: readonly { lines: number; repeats: number }[] };

/** As wide as a run can be. */
const WIDTH = 512;
/** What takes longer per line is stuck, not slow, ms. */
const LINE_MS_MAX = 40;
const BATCH_MS_MIN = 60_000;
const HEAP_MB_MAX = 80;
const RATIO_MAX = 1.3;

/** Times of one batch, ms, and what its files had wrong. */
type Measured = { bytes: number; uploadMs: number; wallMs: number; faults: string[] };

async function measure(gateway: InspectedGateway, lines: number, lineBytes: number): Promise<Measured> {
  await using input = await writeInput(lines, lineBytes);
  const run = await gateway.openRun(WIDTH);
  const startedMs = performance.now();
  const fileId = await upload(run, input);
  const uploadMs = performance.now() - startedMs;
  const { batch, wallMs } = await timed(run, fileId, Math.max(BATCH_MS_MIN, lines * LINE_MS_MAX));
  const { faults } = await audit(run, batch, lines);
  return { bytes: input.bytes, uploadMs, wallMs, faults };
}

/** Smaller batches first, then the large one, in one gateway; the heap is sampled all the while, reading included. */
export async function measureSize(plan: SizePlan, report: (text: string) => void): Promise<Part> {
  await using provider = await startProvider({});
  await using gateway = await startInspected(provider);
  using heap = await watchHeap(gateway);
  const { lines, lineBytes } = plan;
  const wallsMs = new Map<number, number[]>();
  const faults: string[] = [];
  let sentLines = 0;
  const one = async (count: number): Promise<Measured> => {
    const measured = await measure(gateway, count, lineBytes);
    sentLines += count;
    faults.push(...measured.faults);
    report(`size: ${count} lines in ${measured.wallMs.toFixed(0)} ms, uploaded in ${measured.uploadMs.toFixed(0)} ms`);
    return measured;
  };
  // The first pays for what is compiled.
  await one(plan.smaller[0]?.lines ?? lines);
  await heap.peakDuring(
    async () => {
      for (const { lines: count, repeats } of plan.smaller)
        for (let turn = 0; turn < repeats; turn++)
          wallsMs.set(count, [...(wallsMs.get(count) ?? []), (await one(count)).wallMs]);
    },
    { live: false },
  );
  const beforeBytes = await heap.heldBytes();
  let large: Measured | null = null;
  const peak = await heap.peakDuring(async () => void (large = await one(lines)), { live: false });
  const { bytes, uploadMs, wallMs } = large ?? { bytes: 0, uploadMs: 0, wallMs: Number.NaN };
  const endedBytes = await heap.heldBytes();
  const { requests } = await statsOf(provider);
  const mb = (of: number) => `${(of / 1e6).toFixed(1)} MB`;
  const lineMs = wallMs / lines;
  const rows = [
    exact(
      `size: faults in the files of ${lines} lines and of the smaller batches`,
      String(faults.length),
      "= 0",
      faults.length === 0,
    ),
    exact("size: upstream calls", String(requests), `= ${sentLines}, the lines`, requests === sentLines),
    plain("size: input", mb(bytes)),
    plain("size: upload by OpenAI's client", `${(uploadMs / 1_000).toFixed(1)} s`),
    plain("size: from create to completed", `${(wallMs / 1_000).toFixed(1)} s`),
    atMost("size: heap peak of the isolate, garbage included", peak.heapBytes / 1e6, HEAP_MB_MAX, " MB"),
    plain("size: array buffers at most", mb(peak.backingBytes)),
    plain("size: live heap before and after", `${mb(beforeBytes)}, ${mb(endedBytes)}`),
    plain("size: resident memory at most, with Miniflare's R2", mb(peak.rssBytes)),
    plain(`size: time per line at ${lines}`, `${lineMs.toFixed(3)} ms`),
    ...[...wallsMs].map(([count, walls]) =>
      atMost(
        `size: the same ÷ that at ${count} (${(median(walls) / count).toFixed(3)} ms)`,
        lineMs / (median(walls) / count),
        RATIO_MAX,
      ),
    ),
  ];
  return { rows, faults };
}
