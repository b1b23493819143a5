/** What the ledger costs in time: the same batch on an instant upstream, in a run with limits and in one without. */
import { measureFanOut } from "../fanout.ts";
import { against, medianOf, runRounds, type Round, type Suite } from "../suite.ts";

const SLOTS = 1_000;
const WIDTHS = [48, 192];

/** Most that a batch under limits may take, as a multiple of one without. */
const COST_MAX = 1.1;

const suite: Suite = {
  name: "cost of safety",
  title: `the ledger's cost: ${SLOTS} slots on an instant upstream, ms, with limits in all dimensions and without`,
  cells: WIDTHS.flatMap((width) =>
    (["batch-unlimited", "batch"] as const).map((variant) => ({
      variant,
      at: width,
      measure: () => measureFanOut({ variant, asked: { n: SLOTS, width }, latencyMs: 0, warmUps: 3, repeats: 7 }),
    })),
  ),
  table: (of) =>
    WIDTHS.map((width) => {
      const [limited, unlimited] = [of("batch", width, "wall_ms"), of("batch-unlimited", width, "wall_ms")];
      return {
        width: String(width),
        unlimited: unlimited.toFixed(0),
        limited: limited.toFixed(0),
        "limited ÷ unlimited": against(limited / unlimited, "<=", COST_MAX),
      };
    }),
};

export type Safety = { title: string; table: Record<string, string>[]; rounds: Round[] };

/** Alternates both in fresh processes. */
export async function measureSafety(rounds: number, report: (line: string) => void): Promise<Safety> {
  const raw = await runRounds(suite, rounds, report);
  return { title: suite.title, table: suite.table(medianOf(raw)), rounds: raw };
}
