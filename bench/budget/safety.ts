/** What the ledger costs in time: the same batch on an instant upstream, in a run with limits and in one without. */
import { sendBatch } from "../load/fan-outs.ts";
import { openRun, startGateway, startUpstream } from "../servers/servers.ts";
import { median } from "../stats.ts";
import { against } from "../suite.ts";

const SLOTS = 1_000;
const WIDTHS = [48, 192];
const WARM_UPS = 4;
const PAIRS = 11;

/** Most that a batch under limits may take, as a multiple of one without. */
const COST_MAX = 1.1;

/** Wall times of two batches that ran one right after the other, ms. */
type Pair = { limited: number; unlimited: number };

export type Safety = { title: string; table: Record<string, string>[]; pairs: { width: number; pairs: Pair[] }[] };

/**
 * Each round starts fresh processes and asks both runs by turns, so that a machine that gets slower does so for both. The
 * figure is the median over all rounds of the ratio within a pair.
 */
export async function measureSafety(rounds: number, report: (line: string) => void): Promise<Safety> {
  const measured = WIDTHS.map((width): { width: number; pairs: Pair[] } => ({ width, pairs: [] }));
  for (let round = 1; round <= rounds; round += 1) {
    for (const { width, pairs } of measured) {
      const fresh = await measurePairs(width);
      pairs.push(...fresh);
      report(`cost of safety round ${round}/${rounds} at ${width}: ${ratioOf(fresh).toFixed(2)}`);
    }
  }
  const table = measured.map(({ width, pairs }) => ({
    width: String(width),
    unlimited: median(pairs.map(({ unlimited }) => unlimited)).toFixed(0),
    limited: median(pairs.map(({ limited }) => limited)).toFixed(0),
    "limited ÷ unlimited": against(ratioOf(pairs), "<=", COST_MAX),
  }));
  const title = `the ledger's cost: ${SLOTS} slots on an instant upstream, ms, with limits in all dimensions and without`;
  return { title, table, pairs: measured };
}

async function measurePairs(width: number): Promise<Pair[]> {
  await using upstream = await startUpstream();
  await using gateway = await startGateway(upstream);
  const [limited, unlimited] = [await openRun(gateway), await openRun(gateway, {})];
  const ask = (token: string): Promise<number> => sendBatch(gateway, token, { n: SLOTS, width });
  const pairs: Pair[] = [];
  for (let turn = -WARM_UPS; turn < PAIRS; turn += 1) {
    // Who goes first has the machine as the other left it.
    const first = turn % 2 === 0 ? await ask(limited) : 0;
    const without = await ask(unlimited);
    const pair = { limited: turn % 2 === 0 ? first : await ask(limited), unlimited: without };
    if (turn >= 0) pairs.push(pair);
  }
  return pairs;
}

function ratioOf(pairs: readonly Pair[]): number {
  return median(pairs.map(({ limited, unlimited }) => limited / unlimited));
}
