/**
 * `npm run bench:soak -- [--minutes=30] [--clients=6] [--compare=5,25]`: clients of every way in use one gateway for half an hour, some of them
 * leave in the middle, and the provider fails now and then. Is every answer right, and does the gateway's memory stay flat?
 * `--compare`: minutes of heap snapshots, between which it prints what has grown.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { TOKEN_CACHE_MAX } from "../../src/limits.ts";
import { tableOf } from "../table.ts";
import { exact, plain, shownRow, type Row } from "../parts/row.ts";
import { machine, writeResult } from "../results.ts";
import { watchHeap } from "../servers/heap.ts";
import { gatewayBundle } from "../servers/servers.ts";
import { startWorkerd } from "../servers/workerd.ts";
import { flatness, type Sample } from "./flatness.ts";
import { PROGRAMS, useRun, type Place } from "./programs.ts";
import { growthLines, holdings, type Holdings } from "./snapshot.ts";
import { startUpstream } from "../../test/support/upstream.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    clients: { type: "string", default: "6" },
    compare: { type: "string" },
  },
});
const minutes = Number(values.minutes);
const clients = Number(values.clients);

/** Time between two looks at the memory, ms: each collects garbage first, which stops the gateway for some milliseconds. */
const SAMPLE_MS = 15_000;
/** Every so many calls the provider is overloaded. */
const CALLS_PER_FAILURE = 29;
/** Kinds of objects that a comparison of two heaps lists. */
const GROWN_LINES = 30;
/** Growth that a line through noise may show, share of the first figure. */
const GROWTH_MAX = 0.05;

await using upstream = await serveUpstream();
await using gateway = await startWorkerd({
  bundle: await gatewayBundle(),
  vars: {
    ADMIN_KEY: "soak-admin-key-that-guards-nothing",
    WAITING_FETCHES_MAX: "512",
    UPSTREAMS: {
      sim: { kind: "simulated" },
      up: { kind: "openai", base_url: upstream.baseUrl, models: ["*"], prices: { "*": { input: 1, output: 1 } } },
    },
    DEFAULT_MODEL: "up/delay/5/jitter/40",
  },
  objects: "gateway",
  inspector: true,
});
using heap = await watchHeap(gateway);

const place: Place = { url: gateway.url, adminKey: "soak-admin-key-that-guards-nothing" };

/**
 * Uses as many runs as the gateway remembers: an isolate keeps the last TOKEN_CACHE_MAX tokens that it has checked, and the ids
 * of as many runs. Until these are full, memory grows, and half an hour of a soak opens fewer runs.
 */
async function fillCaches(): Promise<void> {
  let left = TOKEN_CACHE_MAX;
  const fill = async (): Promise<void> => {
    for (; left > 0; left -= 1) await useRun(place);
  };
  await Promise.all(Array.from({ length: clients }, fill));
}

await fillCaches();
const startedMs = performance.now();
const isOver = () => performance.now() - startedMs > minutes * 60_000;
const ended = new Map<string, number>();
const faults: string[] = [];
const samples: Sample[] = [];

/** Runs the programs one after another, beginning at another one than the other clients. */
async function client(at: number): Promise<void> {
  for (let turn = at; !isOver(); turn++) {
    const [name, program] = PROGRAMS[turn % PROGRAMS.length] ?? [];
    if (name === undefined || program === undefined) throw new Error("there are no programs");
    try {
      await program(place, `client ${at} turn ${turn}`);
      ended.set(name, (ended.get(name) ?? 0) + 1);
    } catch (error) {
      faults.push(`${name}, client ${at}, turn ${turn}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

/** Minutes at which the heap is searched, to print what has grown between the first time and each later one. */
const compared = (values.compare ?? "").split(",").filter(Boolean).map(Number);
let firstHoldings: Holdings | null = null;

async function compare(): Promise<void> {
  const found = await holdings(heap.inspector);
  if (firstHoldings === null) firstHoldings = found;
  else console.log(growthLines(firstHoldings, found, GROWN_LINES).join("\n"));
}

async function watch(): Promise<void> {
  while (!isOver()) {
    await sleep(SAMPLE_MS);
    const minute = (performance.now() - startedMs) / 60_000;
    samples.push({ minute, heapBytes: await heap.heldBytes(), rssBytes: gateway.rssBytes() });
    if (compared[0] !== undefined && minute >= compared[0]) {
      compared.shift();
      await compare();
    }
    const { heapBytes, rssBytes } = samples.at(-1) ?? { heapBytes: 0, rssBytes: 0 };
    console.error(
      `minute ${minute.toFixed(1)}: heap ${mb(heapBytes)} MB, resident ${mb(rssBytes)} MB, ${upstream.counters.requests} calls`,
    );
  }
}

await Promise.all([watch(), ...Array.from({ length: clients }, (_, at) => client(at))]);

const heapFlat = flatness(samples.map(({ minute, heapBytes }) => ({ minute, bytes: heapBytes })));
const rssFlat = flatness(samples.map(({ minute, rssBytes }) => ({ minute, bytes: rssBytes })));
const rows: Row[] = [
  plain("calls that the provider got", String(upstream.counters.requests)),
  plain("of these, given up by their client", String(upstream.counters.abandoned)),
  ...[...ended].map(([name, times]) => plain(`programs ended: ${name}`, String(times))),
  exact("programs with a wrong answer", String(faults.length), "= 0", faults.length === 0),
  ...flatRows("live heap", heapFlat),
  ...flatRows("resident memory", rssFlat),
];
console.log(`${tableOf(rows.map(shownRow))}\n${faults.slice(0, 20).join("\n")}`);
const raw = { machine: machine(), minutes, clients, rows, samples, faults };
console.log(`figures: ${writeResult("soak.json", JSON.stringify(raw, null, 2))}`);
process.exitCode = rows.some(({ exact: isExact, met }) => isExact && met === false) ? 1 : 0;

function flatRows(what: string, { firstBytes, lastBytes, growth }: ReturnType<typeof flatness>): Row[] {
  return [
    plain(
      `${what}, median of the first third after the warm-up, of the last third`,
      `${mb(firstBytes)}, ${mb(lastBytes)} MB`,
    ),
    exact(`${what} grew by`, `${(growth * 100).toFixed(1)} %`, `<= ${GROWTH_MAX * 100} %`, growth <= GROWTH_MAX),
  ];
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

async function serveUpstream() {
  const server = await startUpstream(
    ({ arrival }) => (arrival % CALLS_PER_FAILURE === CALLS_PER_FAILURE - 1 ? { status: 503 } : {}),
    { recordsPrompts: false },
  );
  return { ...server, [Symbol.asyncDispose]: () => server.stop() };
}
