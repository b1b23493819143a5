/**
 * The ledger as an engine: reservations and settlements of one run object, without the calls that they are for. `floor` is an object
 * that only writes down what it is given. The same run refuses what its budget does not cover, and nothing else. The other gateway with
 * such a ledger, experiential, can be asked for whole calls only: they are beside whole calls of this gateway.
 */
import { z } from "zod";
import { load, type LoadPlan } from "../load/load.ts";
import type { Server } from "../servers/process.ts";
import { openRunWithId, startFloor, startLedger, startUpstream } from "../servers/servers.ts";
import type { Figures, Suite, SuiteOptions } from "../suite.ts";
import { cellOf, startContender, startUpstreamOf } from "./contenders.ts";

const WAITING = [1, 64, 512];
/** Longest load at one concurrency, ms. */
const LOAD_MS_MAX = 2_000;

type Alone = "run" | "floor";
/** Whole calls on an upstream that answers at once: each is a reservation and a settlement, and all that is beside them. */
type Whole = "chat" | "experiential";
type Variant = Alone | Whole;

const NAMES: Record<Variant, string> = {
  run: "run object: a reservation, and the settlement of the one before",
  floor: "object that writes down what it is given",
  chat: "fanout, whole calls of `/v1` on an instant upstream",
  experiential: "experiential, whole calls on an instant upstream",
};

export function ledgerSuite({ quick, peers }: SuiteOptions): Suite {
  const variants: Variant[] = ["run", "floor", "chat", ...peers.filter((name) => name === "experiential")];
  const waiting = quick ? [64] : WAITING;
  const msMax = quick ? 300 : LOAD_MS_MAX;
  return {
    name: "ledger",
    title: "reservations of one run object, each durable before its reply",
    about:
      `Reservations of one run object, each durable before its reply and each with the settlement of an earlier one, ${WAITING.join(", ")} ` +
      "waiting at a time: per second, and the time until the reply. Commits, rows and bytes are per 1,000 reservations. experiential's ledger " +
      "cannot be asked without a call: its row is one of whole calls over HTTP, to be compared with the row of whole calls of this gateway, " +
      "not with reservations alone.",
    cells: variants.map((variant) => ({
      ...cellOf(variant, 0),
      measure: () =>
        variant === "run" || variant === "floor"
          ? measureAlone(variant, waiting, msMax)
          : measureWhole(variant, waiting, msMax),
    })),
    table: (of) =>
      waiting.flatMap((at) =>
        variants.map((variant) => {
          const figure = (name: string, digits: number) => of(variant, 0, `${name}@${at}`).toFixed(digits);
          return {
            waiting: String(at),
            "reservations/s = settlements/s": figure("per_s", 0),
            "p50 / p99 / p99.9 ms": `${figure("p50_ms", 1)} / ${figure("p99_ms", 1)} / ${figure("p999_ms", 1)}`,
            "commits per 1,000": figure("commits", 0),
            "rows per 1,000": figure("rows", 0),
            "KB per 1,000": figure("kb", 0),
            "CPU s per 1,000": figure("cpu_s", 2),
            ledger: NAMES[variant],
          };
        }),
      ),
  };
}

const counted = z.object({ commits: z.number(), rows: z.number(), bytes: z.number().default(Number.NaN) });

async function countsOf(server: Server): Promise<z.infer<typeof counted>> {
  return counted.parse(await (await fetch(`${server.url}/bench/ledger`)).json());
}

async function measureAlone(variant: Alone, waiting: readonly number[], msMax: number): Promise<Figures> {
  await using upstream = await startUpstream();
  await using server = variant === "run" ? await startLedger(upstream) : await startFloor(upstream, "shared");
  const run = variant === "run" ? (await openRunWithId(server)).id : "";
  let calls = 0;
  const body = () => JSON.stringify({ run, call: calls++ });
  const target = { url: `${server.url}/bench/reserve`, headers: {}, body };
  return await measureLoads({ server, target, waiting, msMax, counts: () => countsOf(server) });
}

async function measureWhole(variant: Whole, waiting: readonly number[], msMax: number): Promise<Figures> {
  await using upstream = await startUpstreamOf(variant, { hasShortStreams: true });
  await using started = await startContender(variant, upstream);
  return await measureLoads({ ...started, waiting, msMax, counts: () => Promise.resolve(UNCOUNTED) });
}

/** What a ledger writes that cannot be asked for it. */
const UNCOUNTED = { commits: Number.NaN, rows: Number.NaN, bytes: Number.NaN };

type Loads = {
  server: Server;
  target: Pick<LoadPlan, "url" | "headers" | "body">;
  waiting: readonly number[];
  msMax: number;
  counts: () => Promise<z.infer<typeof counted>>;
};

async function measureLoads({ server, target, waiting, msMax, counts }: Loads): Promise<Figures> {
  const plan = { ...target, requests: 1_000_000 };
  await load({ ...plan, concurrency: 16, msMax: msMax / 3 });
  const figures: Figures = {};
  for (const concurrency of waiting) {
    const [before, cpuMs] = [await counts(), server.cpuMs()];
    const { requests, rps, p50Ms, p99Ms, p999Ms } = await load({ ...plan, concurrency, msMax });
    const [after, thousands] = [await counts(), requests / 1_000];
    figures[`per_s@${concurrency}`] = rps;
    figures[`p50_ms@${concurrency}`] = p50Ms;
    figures[`p99_ms@${concurrency}`] = p99Ms;
    figures[`p999_ms@${concurrency}`] = p999Ms;
    figures[`commits@${concurrency}`] = (after.commits - before.commits) / thousands;
    figures[`rows@${concurrency}`] = (after.rows - before.rows) / thousands;
    figures[`kb@${concurrency}`] = (after.bytes - before.bytes) / 1_000 / thousands;
    figures[`cpu_s@${concurrency}`] = (server.cpuMs() - cpuMs) / 1_000 / thousands;
  }
  return figures;
}
