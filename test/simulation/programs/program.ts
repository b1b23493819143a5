/** What clients do with a run, and what they may rely on: programs that check every reply. */
import type { Random } from "../../../bench/adversary/random.ts";
import { ADMIN_KEY, isLimited, modelOf } from "../world.ts";
import { batch, queries } from "./calls.ts";
import { checkTree, children } from "./children.ts";
import { budgetIn, Client, PATIENCE_MS, textAt } from "./client.ts";
import { ELEMENTS_MAX, FIXED_TASKS, graph } from "./graph.ts";
import { paused, toppedUp } from "./pauses.ts";
import { POOR_SLOT_NANO_USD, SLOT_NANO_USD, type Ends, type Kind, type Program, type Work } from "./work.ts";

/** What each kind does, and its share among all kinds that a simulation has. */
const WORK: Readonly<Record<Kind, { share: number; work: (work: Work) => Promise<Ends> }>> = {
  batch: { share: 3, work: batch },
  hedged: { share: 2, work: batch },
  leaves: { share: 2, work: batch },
  async: { share: 2, work: batch },
  queries: { share: 1, work: queries },
  poor: { share: 1, work: batch },
  graph: { share: 2, work: graph },
  children: { share: 2, work: children },
  "topped-up": { share: 1, work: toppedUp },
  paused: { share: 1, work: paused },
};

/** What programs are drawn from. */
export type Mix = {
  kinds: readonly Kind[];
  /** Mean slots of a program that is neither large nor huge. */
  slots: number;
  /** Share of the programs with a batch that have `LARGE_SLOTS`. */
  largeShare: number;
  /** Share of the programs with child runs that have `HUGE_SLOTS`. */
  hugeShare: number;
  /** Upstreams, each with a gate of its own. */
  upstreams: number;
};

/** Slots of a large program, in one batch; and of a huge one, in child runs. */
const LARGE_SLOTS = [1_000, 10_000] as const;
const HUGE_SLOTS = [10_000, 50_000] as const;
/** Width of large and huge programs: with few calls at a time they would take hours. */
const LARGE_WIDTH = 256;
/**
 * What a client adds to its patience for each slot, virtual ms: a gate that was refused may let through one call at a time. No client
 * waits longer than its token is valid.
 */
const SLOT_PATIENCE_MS = 5_000;
const PATIENCE_MS_MAX = 11 * 3_600_000;

/** Draws the program of an index in a simulation. */
export function drawProgram(index: number, mix: Mix, random: Random): Program {
  const { kinds, largeShare, hugeShare, upstreams } = mix;
  const kind = random.weighted<Kind>(kinds.map((each) => [each, WORK[each].share] as const));
  const isHuge = kind === "children" && random.chance(hugeShare);
  const isLarge = LARGE_KINDS.has(kind) && random.chance(largeShare);
  const slots = isHuge
    ? random.integer(...HUGE_SLOTS)
    : isLarge
      ? random.integer(...LARGE_SLOTS)
      : slotsOf(kind, mix.slots, random);
  const isWide = isLarge || isHuge;
  const limitNanoUsd = limitOf(kind, slots, random);
  const width = random.pick([4, 16, 64, 256]);
  return {
    name: `p${index}`,
    kind,
    slots,
    width: isWide ? LARGE_WIDTH : width,
    model: modelOf(isWide ? limitedAt(index, upstreams) : index % upstreams),
    patienceMs: Math.min(PATIENCE_MS + slots * SLOT_PATIENCE_MS, PATIENCE_MS_MAX),
    limitNanoUsd,
  };
}

/** Who sends thousands of calls has a key that allows some hundred at once: with some calls a second they would take the day. */
function limitedAt(index: number, upstreams: number): number {
  const at = index % upstreams;
  return isLimited(at) || at + 1 === upstreams ? at : at + 1;
}

const LARGE_KINDS: ReadonlySet<Kind> = new Set(["batch", "hedged", "leaves", "async", "poor", "topped-up", "paused"]);

function slotsOf(kind: Kind, mean: number, random: Random): number {
  if (kind === "queries") return Math.min(mean, 60);
  const drawn = random.integer(1, 2 * mean - 1);
  if (kind === "graph") return FIXED_TASKS + Math.min(drawn, ELEMENTS_MAX);
  return drawn;
}

function limitOf(kind: Kind, slots: number, random: Random): number | null {
  const plenty = slots * SLOT_NANO_USD * 8;
  const little = slots * POOR_SLOT_NANO_USD;
  if (kind === "poor" || kind === "topped-up") return little;
  if (kind === "children") return random.chance(0.5) ? little : plenty;
  return random.chance(0.7) ? plenty : null;
}

/** `spentNanoUsd`: what the gateway says that the run has spent. */
export type Finished = Ends & { spentNanoUsd: number };

export type RunDeps = Pick<Work, "world" | "violated" | "limited">;

/** Opens a run, does the program's work in it, checks it, and closes it. */
export async function finish(program: Program, deps: RunDeps): Promise<Finished> {
  const { world, limited } = deps;
  const { name, kind, slots, width, limitNanoUsd } = program;
  const violated = (what: string): void => deps.violated(`${name} (${kind}, ${slots} slots): ${what}`);
  const budget = limitNanoUsd === null ? {} : { budget: { usd: limitNanoUsd / 1e9 } };
  const body = { name, max_parallel: width, retention_s: 3_600, expires_in_s: 43_200, ...budget };
  if (limitNanoUsd !== null) limited(name, limitNanoUsd);
  const operator = new Client({ world, patienceMs: program.patienceMs, violated }, ADMIN_KEY);
  const opened = await operator.call({ method: "POST", path: "/runs", body }, [201]);
  const client = operator.as(textAt(opened, "token"));
  const work = { world, program, runId: textAt(opened, "id"), client, violated, limited };
  const ends = await WORK[kind].work(work);
  const spentNanoUsd = await closed(work);
  if (kind === "children") await checkTree(work, spentNanoUsd);
  return { ...ends, spentNanoUsd };
}

/** Closes the run, and waits until nothing of it is reserved any more. Returns what it has spent. */
async function closed({ world, client, program, runId, violated }: Work): Promise<number> {
  await client.call({ method: "POST", path: `/runs/${runId}/close` }, [200]);
  const untilMs = world.clock.nowMs + program.patienceMs;
  for (;;) {
    const run = await client.call({ method: "GET", path: `/runs/${runId}`, token: ADMIN_KEY }, [200]);
    const { usd } = budgetIn(Reflect.get(run, "budget"));
    if (usd.reserved !== 0 && world.clock.nowMs <= untilMs) {
      await world.clock.wait(5_000);
      continue;
    }
    if (usd.reserved !== 0) violated(`the closed run still reserves ${usd.reserved}`);
    return Math.round(usd.spent * 1e9);
  }
}
