/** The JavaScript heap of a workerd, seen through its inspector. Objects and Worker share one isolate, so one heap. */
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { connectInspector, type Inspector } from "./inspector.ts";
import type { Workerd } from "./workerd.ts";

const heapUsage = z.object({ usedSize: z.number(), backingStorageSize: z.number().default(0) });

/** Time between two samples of the heap, ms: a batch of 10,000 gets hundreds, and they cost it next to nothing. */
const SAMPLE_MS = 10;
/** The same where each sample first collects garbage, ms: a collection takes several. */
const SAMPLE_LIVE_MS = 100;
/** Time between two requests that wake an idle isolate, ms. */
const WAKE_MS = 20;

export type HeapPeak = {
  /** Most that was used at any sample, garbage not yet collected included, bytes. */
  heapBytes: number;
  /** Peak of array buffers outside of the heap, bytes. */
  backingBytes: number;
  rssBytes: number;
  samples: number;
};

export type Heap = Disposable & {
  inspector: Inspector;
  /** Bytes in use after a full collection. */
  heldBytes: () => Promise<number>;
  /** Runs `work` and samples the heap while it lasts. With `live`, each sample is taken after a full collection. */
  peakDuring: (work: () => Promise<void>, options: { live: boolean }) => Promise<HeapPeak>;
};

/** Watches the heap of a workerd that was started with `inspector: true`. */
export async function watchHeap(workerd: Workerd): Promise<Heap> {
  if (workerd.inspectorUrl === null) throw new Error("this workerd was started without its inspector");
  const inspector = await connectInspector(workerd.inspectorUrl);
  const usage = async () => heapUsage.parse(await inspector.call("Runtime.getHeapUsage"));
  await inspector.call("HeapProfiler.enable");
  // The collection is a task of the isolate, and an idle isolate runs none: requests wake it until it is done.
  const collect = async () => {
    const progress = { done: false };
    const collecting = inspector.call("HeapProfiler.collectGarbage").finally(() => (progress.done = true));
    const waking = async () => {
      while (!progress.done) {
        await fetch(`${workerd.url}/health`).then((response) => response.arrayBuffer());
        await sleep(WAKE_MS);
      }
    };
    await Promise.all([collecting, waking()]);
  };
  return {
    inspector,
    heldBytes: async () => {
      // Twice: finalizers of the first free what the second finds.
      await collect();
      await collect();
      return (await usage()).usedSize;
    },
    peakDuring: async (work, { live }) => {
      const peak: HeapPeak = { heapBytes: 0, backingBytes: 0, rssBytes: 0, samples: 0 };
      const progress = { done: false };
      const sample = async () => {
        while (!progress.done) {
          if (live) await collect();
          const { usedSize, backingStorageSize } = await usage();
          peak.heapBytes = Math.max(peak.heapBytes, usedSize);
          peak.backingBytes = Math.max(peak.backingBytes, backingStorageSize);
          peak.rssBytes = Math.max(peak.rssBytes, workerd.rssBytes());
          peak.samples += 1;
          await sleep(live ? SAMPLE_LIVE_MS : SAMPLE_MS);
        }
      };
      const sampling = sample();
      try {
        await work();
      } finally {
        progress.done = true;
        await sampling;
      }
      return peak;
    },
    [Symbol.dispose]: () => inspector[Symbol.dispose](),
  };
}
