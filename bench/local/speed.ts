/**
 * Single calls through `npm start` against the same gateway on plain workerd: what the relay costs. Both run all the
 * while and are measured in turns of a second or less, so that what else the machine does meets both: a figure is the median of the
 * ratios of neighbours.
 */
import { load } from "../load/load.ts";
import type { Server } from "../servers/process.ts";
import { openRun, startGateway, startUpstream } from "../servers/servers.ts";
import { atLeast, plain, type Part } from "../parts/row.ts";
import { median } from "../stats.ts";
import { queryTarget } from "../suites/query.ts";
import { startNpm } from "./started.ts";

const CONCURRENCIES = [1, 16, 64];
/** The share of plain workerd's speed that `npm start` must reach. */
const RATIO_MIN = 0.6;
/** Requests of a turn at each concurrency: under a second each. */
const REQUESTS: Readonly<Record<number, number>> = { 1: 100, 16: 300, 64: 400 };
const TURN_MS_MAX = 10_000;

export type Turn = {
  concurrency: number;
  workerdRps: number;
  startRps: number;
  workerdP50Ms: number;
  startP50Ms: number;
};

/** `pairs`: turns of each at every concurrency. */
export async function measureSpeed(pairs: number): Promise<Part & { turns: Turn[] }> {
  await using upstream = await startUpstream();
  await using workerd = await startGateway(upstream);
  await using start = await startNpm(upstream);
  const measured = async (server: Server, token: string, concurrency: number) => {
    const requests = REQUESTS[concurrency] ?? 100;
    return await load({ ...queryTarget(server, token), concurrency, requests, msMax: TURN_MS_MAX });
  };
  const turns: Turn[] = [];
  for (const concurrency of CONCURRENCIES) {
    const tokens = { workerd: await openRun(workerd), start: await openRun(start) };
    await measured(workerd, tokens.workerd, concurrency);
    await measured(start, tokens.start, concurrency);
    for (let pair = 0; pair < pairs; pair += 1) {
      const isFirst = pair % 2 === 0;
      const early = isFirst ? await measured(workerd, tokens.workerd, concurrency) : null;
      const through = await measured(start, tokens.start, concurrency);
      const bare = early ?? (await measured(workerd, tokens.workerd, concurrency));
      turns.push({
        concurrency,
        workerdRps: bare.rps,
        startRps: through.rps,
        workerdP50Ms: bare.p50Ms,
        startP50Ms: through.p50Ms,
      });
    }
  }
  const rows = CONCURRENCIES.flatMap((concurrency) => {
    const own = turns.filter((turn) => turn.concurrency === concurrency);
    const of = (figure: (turn: Turn) => number): number => median(own.map(figure));
    const at = `speed: at ${concurrency}`;
    return [
      plain(
        `${at}, requests/s, npm start and workerd`,
        `${of(({ startRps }) => startRps).toFixed(0)}, ${of(({ workerdRps }) => workerdRps).toFixed(0)}`,
      ),
      plain(`${at}, added p50`, `${of((turn) => turn.startP50Ms - turn.workerdP50Ms).toFixed(2)} ms`),
      atLeast(
        `${at}, npm start ÷ workerd`,
        of((turn) => turn.startRps / turn.workerdRps),
        RATIO_MIN,
      ),
    ];
  });
  return { rows, faults: [], turns };
}
