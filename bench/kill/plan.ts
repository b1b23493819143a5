/** What happens in a volley: several runs in one gateway, each with one batch, and the kills that hit all of them. Drawn by seed. */
import { draw } from "../budget/tariff.ts";

/**
 * What the client does once its batch is posted. `attached` waits for the answer and posts again, with the same key, when
 * it is lost; `leaves` waits for it too, so that the Worker of its request executes the batch, and disconnects in the middle;
 * `looks` was answered 202 and polls the group; `silent` was answered 202 and asks nothing until all is over, as one that has
 * left, so that nothing but its alarm wakes the run.
 */
export type ClientKind = "attached" | "leaves" | "looks" | "silent";

export type RunPlan = {
  name: string;
  slots: number;
  maxParallel: number;
  /** Bytes of each prompt: a batch of large ones arrives at the run object in several calls. */
  promptBytes: number;
  /** Longest that the upstream takes for an answer, ms; 0 = it answers at once. */
  latencyMsMax: number;
  client: ClientKind;
  /** Of a client that leaves: the share of slots that the upstream has answered by then. */
  leavesAt?: number;
  onLost: "retry" | "fail";
  /** The budget as a share of what the batch costs: below 1, it ends before the batch does; else it lasts, whatever the kills take. */
  budgetShare: number;
  /** Between the volley's start and the posting of the batch, ms. */
  postsAfterMs: number;
};

/**
 * Who executes batches that no client waits for: lanes, or Workflow instances. `waitingFetchesMax`: how many fetches of an
 * executor may wait for headers; with few, lanes join an instance.
 */
export type Detached = { executor: "lanes" | "workflow"; waitingFetchesMax: number };

/**
 * `when`: so many calls have reached the upstream, or so many ms after that many batches were posted, or after the gateway
 * has come up again. The next gateway starts after `downMs`. `resumeAfterMs`: so long after that, the Workflow instances of all
 * runs run again, as they do on Cloudflare; unset = never, as in Miniflare's simulation.
 */
export type KillPlan = {
  when: { calls: number } | { posted: number; afterMs: number } | { afterMs: number };
  downMs: number;
  resumeAfterMs?: number;
};

export type VolleyPlan = { runs: readonly RunPlan[]; kills: readonly KillPlan[]; detached?: Detached };

const LATENCIES_MS = [0, 10, 40, 80];
const WIDTHS = [16, 48, 64, 64, 64, 128];
/** Largest budget that matters: reserved is several times what is spent. */
const AMPLE = 20;
/** About how long a gateway that is busy takes to open a large batch, ms. */
const POST_MS = 250;

type Storm = { runs: number; slots: number; executor: Detached["executor"] };

/** Draws volley `number` of a storm. */
export function planVolley(seed: string, number: number, { runs, slots, executor }: Storm): VolleyPlan {
  const drawn = (...words: (string | number)[]): number => draw(seed, number, ...words);
  const opening = drawn("opening") < 0.25;
  const isDetached = executor === "workflow";
  const planned = Array.from({ length: runs }, (_, at) =>
    planRun(`v${number}r${at}`, { at, slots, opening, isDetached, drawn }),
  );
  const waitingFetchesMax = isDetached && drawn("headers") < 0.3 ? 6 : 512;
  const moments = 1 + (drawn("second kill") < 0.35 ? 1 : 0) + (drawn("third kill") < 0.15 ? 1 : 0);
  const kills = Array.from({ length: moments }, (_, kill) => ({
    when: kill > 0 ? laterMoment(drawn(kill, "later"), drawn(kill, "moment")) : first(),
    downMs: downMs(drawn(kill, "down"), drawn(kill, "down ms")),
    ...(isDetached && drawn(kill, "resumes") < 0.6 ? { resumeAfterMs: resumeMs(drawn(kill, "resume ms")) } : {}),
  }));
  return { runs: planned, kills, detached: { executor, waitingFetchesMax } };

  function first(): KillPlan["when"] {
    const moment = drawn("moment");
    if (opening) return { posted: 1 + Math.floor(runs * moment), afterMs: POST_MS * drawn("after posts") };
    return { calls: Math.floor(0.9 * runs * slots * moment) };
  }
}

type Drawn = (...words: (string | number)[]) => number;

/** `isDetached`: no client waits for its batch. */
type RunDrawing = { at: number; slots: number; opening: boolean; isDetached: boolean; drawn: Drawn };

function planRun(name: string, { at, slots, opening, isDetached, drawn }: RunDrawing): RunPlan {
  const kind = drawn(at, "kind");
  const client = drawn(at, "client");
  // Only the gateway knows which slots are never answered, so a client must poll it.
  const isPolled = kind < 0.3;
  return {
    name,
    slots,
    maxParallel: pick(WIDTHS, drawn(at, "width")),
    promptBytes: drawn(at, "large") < 0.4 ? 1_200 : 60,
    latencyMsMax: pick(LATENCIES_MS, drawn(at, "latency")),
    client: isDetached ? detachedKind(isPolled, client) : isPolled ? polledKind(client) : kindOf(client),
    leavesAt: 0.9 * drawn(at, "leaves"),
    onLost: kind < 0.1 ? "fail" : "retry",
    budgetShare: kind >= 0.1 && isPolled ? 0.3 + 0.6 * drawn(at, "share") : AMPLE,
    postsAfterMs: (opening ? 500 : 2_000) * drawn(at, "posts"),
  };
}

function detachedKind(isPolled: boolean, drawn: number): ClientKind {
  return isPolled || drawn < 0.4 ? "looks" : "silent";
}

function polledKind(drawn: number): ClientKind {
  return drawn < 0.35 ? "attached" : "looks";
}

function kindOf(drawn: number): ClientKind {
  if (drawn < 0.3) return "attached";
  if (drawn < 0.55) return "leaves";
  return drawn < 0.75 ? "looks" : "silent";
}

/** Just after the restart, while found leases are waited for, or when they have run out. */
function laterMoment(which: number, moment: number): KillPlan["when"] {
  if (which < 0.4) return { afterMs: 2_000 * moment };
  return { afterMs: which < 0.7 ? 2_000 + 26_000 * moment : 30_000 + 4_000 * moment };
}

/** One restart in ten takes so long that every alarm is overdue by then. */
function downMs(which: number, long: number): number {
  if (which < 0.6) return 0;
  return which < 0.9 ? 3_000 * long : 32_000;
}

/** While the leases of the lost instances hold, or when lanes have taken over. */
function resumeMs(moment: number): number {
  return moment < 0.5 ? 8_000 * moment : 60_000 * (moment - 0.4);
}

function pick(from: readonly number[], at: number): number {
  return from[Math.floor(at * from.length)] ?? 0;
}
