/**
 * A shard of the run's ledger: one executor's attempts in flight with their reservations, and the totals of those that
 * ended. Each shard is one row, so that a lane's settlement and claim cost one row together; what the run has spent and
 * reserved is the sum of its shards. A lane has the shard of its number; single calls share shards from
 * DIRECT_SHARD_FIRST on, Workers that execute their groups those from WORKER_SHARD_FIRST on.
 */
import type { TokenBounds } from "../money/estimate.ts";
import type { Amounts } from "../money/ledger.ts";
import type { TokenPrice } from "../money/token-price.ts";
import type { CacheMark, CapKind, FallbackCause, HedgeRule, PriceFacts, UnreservableField } from "../../call.ts";
import type { CallLabels } from "../../labels.ts";
import type { TraceContext } from "../../trace-context.ts";
import type { StoredWindow, WindowGroup } from "./concurrency-window.ts";
import { groupSeqOf } from "../queue/slot.ts";
import { zeroTotals, type Totals } from "../measures/totals.ts";
import { totalsText } from "../measures/totals-text.ts";
import type { GateTokens } from "./tokens.ts";
import { RenewedMap } from "../../renewed/map.ts";

/** The shard of slots that providers' batches answer: their attempts begin and end in one turn. */
export const PROVIDER_SHARD = 100_000;
/** Number of the first shard of single calls; the numbers of lanes are lower. */
export const DIRECT_SHARD_FIRST = 1_000;
/** Leases in one shard of single calls: rewriting a row of sixteen is cheap, and one busy run has few such rows. */
export const DIRECT_SHARD_LEASES_MAX = 16;
/** Number of the first shard of Workers that execute their groups: single calls have at most DIRECT_CALLS_MAX ÷ 16 shards. */
export const WORKER_SHARD_FIRST = 2_000;
/**
 * Leases in one shard of Workers. A Worker may have 512, and a row of that many would be 100 KB, written for each answer
 * that arrives alone; where many arrive together, more than a few rows would be.
 */
export const WORKER_SHARD_LEASES_MAX = 32;

/** Executors of slots have numbers: lanes their own, from 0; the Worker of a group this one plus the group's number. */
export const WORKER_FIRST = 1_000_000;

/** The executor that the Worker of a group's client is. */
export function workerOf(groupSeq: number): number {
  return WORKER_FIRST + groupSeq;
}

/** True if an executor is a client's Worker, which is bound to its group; false for a lane, which serves any. */
export function isWorker(executor: number): boolean {
  return executor >= WORKER_FIRST;
}

/** The executor of a slot's attempt: the Worker of its group, or the lane whose shard stores it. */
export function executorOf(slotId: number, shard: Shard): number {
  return shard.id >= WORKER_SHARD_FIRST ? workerOf(groupSeqOf(slotId)) : shard.id;
}

/** What a model resolves to: its upstream, price and limits. */
export type Target = {
  upstream: string;
  model: string;
  /** The gate of its upstream and key: what one call learns there of limits holds for all calls of the same gate. */
  gate: string;
  /** Name of the key, if the upstream has several. */
  key?: string;
  /** null = unpriced and allowed to be free. */
  price: TokenPrice | null;
  bounds: TokenBounds;
  /** Request fields that are allowed under a limit although no reservation covers them. */
  allowParams: readonly string[];
  /** What the model's name requests that no reservation covers; absent = nothing. */
  unbounded?: readonly UnreservableField[];
  /** Most attempts of the run in flight at its gate. */
  maxInFlight: number;
  timeoutMs: number;
  attemptsMax: number;
  /**
   * Set if dispatch chooses where an attempt goes; the target itself is then the first that it may choose. The target of
   * an attempt has no choices.
   */
  choices?: readonly Choice[];
  /** The name of the route that the choices belong to; absent = they are the keys of one upstream. */
  route?: string;
  /** How its provider caches prompts; absent = it does not, or nothing is gained. */
  cache?: TargetCache;
  /** When its calls get a second attempt beside a slow one; absent = never, unless they ask for it. */
  hedge?: HedgeRule;
  /** Set if an attempt that is aborted costs what was seen of its stream, which its executor reports; absent = its reservation. */
  abortCost?: "seen";
  /** Whether the upstream gets its client's trace; absent = it does not. */
  getsTrace?: true;
  /** How its calls go through its provider's batches; absent = the provider sells none, or its price is not known. */
  batch?: BatchTerms;
  /** Set if the run's own pull workers answer its calls, and report what they cost; absent = a provider does. */
  isPulled?: true;
  /** Set if it is a tool of the run: its calls reserve and cost nothing. `idempotent`: whether a lost call is made again. */
  tool?: { idempotent: boolean };
  /** The one protocol that the upstream speaks, or all choices do; absent = it takes both, or some choices do not. */
  protocol?: Protocol;
};

/** How prompts are cached: what marks them, fewest tokens, and how long they are kept after their last use. */
export type TargetCache = { mark: CacheMark["by"] | null; minTokens: number; keptMs: number };

/** The beginning of a call's prompt, as its target caches it. `mark` absent = nothing in the request says so. */
export type PrefixAt = { name: string; mark?: CacheMark; keptMs: number; waitMs: number };

/** First wait between two looks at a batch, and how long before a deadline calls leave it; null = by the size of the group. */
export type BatchTerms = { pollMs: number; marginMs: number | null };

/** What an upstream speaks. */
export type Protocol = "openai" | "anthropic";

/**
 * One way of making a call: a model at an upstream, under any of that upstream's keys. `on`: the causes of failure for which
 * calls are made here that were to be made at an earlier choice; null = any that passes (routes/cause.ts).
 */
export type Choice = { targets: readonly Target[]; on: readonly FallbackCause[] | null };

/** Where a call that has choices is among them. */
export type Position = {
  /** The first choice that it may have. */
  from: number;
  /** Why that is not the first of all. */
  cause: FallbackCause | null;
  /** By choice: its attempts so far, without those that their key's stop ended. */
  tried: readonly number[];
  /** The choices that take no more of its attempts, as bits. */
  spent: number;
};

/**
 * The choices of an attempt's call, which of them it is, and why it is not an earlier one. In memory only: a restart forgets
 * what was tried.
 */
export type ChosenFrom = {
  choices: readonly Choice[];
  route: string | undefined;
  at: number;
  cause: FallbackCause | null;
  position: Position;
};

/** An attempt in flight: the lease of an executor on a slot, and the reservation behind it. */
export type AttemptInFlight = {
  attemptId: string;
  /** null for a single call: its slot is the client's own request. */
  slotId: number | null;
  attempt: number;
  target: Target;
  amounts: Amounts;
  startedAtMs: number;
  queuedMs: number;
  /** Completion cap to send upstream, in tokens; null = none. */
  capTokens: number | null;
  capKind: CapKind;
  /** Of a cap that the budget has lowered: the client's; null = it requests none. */
  requestedCap?: number | null;
  /** The shape of its template (`leaseShapeOf`), and the most prompt tokens that its bytes are; null = its answer shows no template. */
  shape: string;
  byteTokensMax: number | null;
  /** The same by the look at its text, of a request with images, if that is lower; absent = it is not. In memory only. */
  lookTokensMax?: number;
  /** The fields of its request that decide the rates at which it is billed. */
  priced: PriceFacts;
  /** Tokens of its prompt by the look at the text, if its answer can judge that look; in memory only. */
  textSample: number | null;
  /** Times that its call is asked again for an answer that fits its schema; absent = it has no schema. */
  schemaRetries?: number;
  /** Set if its call may go on after its answer: to another model, or for another sample. */
  hasCourse?: true;
  /** What follows if its outcome is unknown: another attempt, or the failure of its call. */
  onLost: "retry" | "fail";
  /** The lease expires then, unless it is held or renewed. In memory only: a restart grants a new term. */
  readonly expiresAtMs: number;
  /** Its tokens as its gate counts them; null = an earlier instance of the run has started it. In memory only. */
  gateTokens: GateTokens | null;
  /** Number of the event of its start. */
  startSeq: number;
  /** The in-flight key that its call leads; null = its outcome is not shared. */
  dedupeKey: string | null;
  /** Absent if its call has no choice. */
  chosenFrom?: ChosenFrom;
  /** The service tier that its executor asks for; absent = none. In memory only. */
  tier?: string;
  /** The beginning of its prompt that it shares with others, and whether it writes that. In memory only. */
  prefix?: PrefixAt & { leads: boolean };
  /** When its call gets a second attempt beside it; absent = never. In memory only: a restart hedges nothing that it finds. */
  hedge?: HedgeRule;
  /** The id of the slow attempt beside which it was started; absent = it is no hedge. */
  hedgeOf?: string;
  /** Of a single call: its client's trace; absent = it has none. */
  trace?: TraceContext;
  /** Of a single call: its labels; absent = it has none. */
  labels?: CallLabels;
  /** Of a single call: its coalescing window; absent = it has none, or a restart has lost it. */
  window?: WindowGroup;
};

export type Shard = { id: number; totals: Totals; leases: RenewedMap<string, AttemptInFlight> };

export function newShard(id: number): Shard {
  return { id, totals: zeroTotals(), leases: new RenewedMap() };
}

/**
 * What an attempt has of its call that its row has as it is: the end of a lease that a restart finds needs it. A new one is a field of
 * `AttemptInFlight`, which `leaseFor` sets, and its name here.
 */
const KEPT = [
  "requestedCap",
  "schemaRetries",
  "hasCourse",
  "hedgeOf",
  "trace",
] as const satisfies readonly (keyof AttemptInFlight)[];

type Kept = Pick<AttemptInFlight, (typeof KEPT)[number]>;

/** What a row keeps of an attempt, and an attempt gets of its row; absent = it has none. */
export function keptOf(lease: Kept): Kept {
  const kept: Kept = {};
  for (const name of KEPT) keep(kept, name, lease[name]);
  return kept;
}

function keep<Name extends keyof Kept>(kept: Kept, name: Name, value: Kept[Name]): void {
  if (value !== undefined) kept[name] = value;
}

/** A lease as it is stored in its shard's row; on start, its target is resolved from the configuration of then. */
export type StoredLease = Kept & {
  id: string;
  slot: number | null;
  attempt: number;
  upstream: string;
  model: string;
  /** Name of the key, if the upstream has several. */
  key?: string;
  amounts: Amounts;
  startedAtMs: number;
  queuedMs: number;
  /** Number of the event of its start, which may be written later than this row. */
  startSeq: number;
  /** Absent unless the request marks cache writes or names a service tier. */
  priced?: PriceFacts;
  /** Of a single call, because a repeated request for its permit gets the same cap; of a slot only with `capKind`. */
  capTokens?: number;
  /**
   * Of a single call, absent = the client's; of a slot only if an answer that ends at this cap is treated specially.
   */
  capKind?: Exclude<CapKind, "client">;
  /** Both absent if the attempt's answer shows no template. */
  shape?: string;
  byteTokensMax?: number;
  /** Of a single call whose unknown outcome is its failure; a slot has the rule of its group. */
  onLost?: "fail";
  /** The in-flight key that its call leads, so that equal calls follow it in the next instance too; absent = none. */
  dedupeKey?: string;
  /** Its labels: they began with the step. */
  step?: CallLabels;
  /** The id of its coalescing window's group; absent = it has none. */
  window?: string;
};

/**
 * A shard's row. `upTo`: the number of the newest event when it was written: it has all leases of the shard that started before,
 * and those that are stored apart started later; absent = none is. `epoch`: the number of the object's instance that has written
 * it; absent = the table `meta` has it. `windows`: of the row with the highest `upTo`, the groups of single calls that have not
 * ended; absent = there are none, or another row of the same turn has them. `settled`: absent = another row has it, or every group is read.
 */
export type StoredShard = {
  totals: Totals;
  leases: StoredLease[];
  upTo?: number;
  epoch?: number;
  windows?: StoredWindow[];
  settled?: StoredSettled;
};

/**
 * The groups that a restart need not read, because nothing changes them any more: all below number `before`, but for those in `open`. `counts`: what
 * they add to the statistics. `next`: a number above that of every group then. An older one is as true as the newest: it only covers fewer groups.
 */
export type StoredSettled = {
  before: number;
  next: number;
  open: number[];
  counts: { slots: number; parallelGroups: number; parallelSlots: number };
};

/** A lease that is stored with its call instead of in its shard's row, which a settlement would rewrite. */
export type LeaseApart = { shard: number; lease: StoredLease };

/** The texts of leases as they are stored, once nothing that is stored of them changes any more. */
const leaseTexts = new WeakMap<AttemptInFlight, string>();

function leaseText(lease: AttemptInFlight): string {
  const known = leaseTexts.get(lease);
  if (known !== undefined) return known;
  const text = JSON.stringify(storedLease(lease));
  // The first call of a coalescing window is in no group until a second one arrives.
  const mayJoinGroup = lease.window !== undefined && lease.window.id === null;
  if (!mayJoinGroup) leaseTexts.set(lease, text);
  return text;
}

/**
 * A `StoredShard` as JSON. A row is written with every settlement, with all leases of its shard: each of them is made a text once.
 */
export function shardText(shard: Shard, written: Omit<StoredShard, "totals" | "leases"> = {}): string {
  const leases = Array.from(shard.leases.values(), leaseText);
  const rest = JSON.stringify(written);
  const others = rest === "{}" ? rest.slice(1) : `,${rest.slice(1)}`;
  return `{"leases":[${leases.join(",")}],"totals":${totalsText(shard.totals)}${others}`;
}

export function leaseApart(lease: AttemptInFlight, shard: Shard): LeaseApart {
  return { shard: shard.id, lease: storedLease(lease) };
}

export function storedLease(lease: AttemptInFlight): StoredLease {
  return {
    id: lease.attemptId,
    slot: lease.slotId,
    attempt: lease.attempt,
    upstream: lease.target.upstream,
    model: lease.target.model,
    ...(lease.target.key === undefined ? {} : { key: lease.target.key }),
    amounts: lease.amounts,
    startedAtMs: lease.startedAtMs,
    queuedMs: lease.queuedMs,
    startSeq: lease.startSeq,
    ...(Object.keys(lease.priced).length === 0 ? {} : { priced: lease.priced }),
    ...capOf(lease),
    ...(lease.byteTokensMax === null ? {} : { shape: lease.shape, byteTokensMax: lease.byteTokensMax }),
    ...(lease.slotId === null && lease.onLost === "fail" ? { onLost: "fail" } : {}),
    ...(lease.dedupeKey === null ? {} : { dedupeKey: lease.dedupeKey }),
    ...keptOf(lease),
    ...(lease.labels === undefined ? {} : { step: lease.labels }),
    ...(lease.window === undefined || lease.window.id === null ? {} : { window: lease.window.id }),
  };
}

/**
 * The stored fields of a cap. A lane gets a lease once, so after a restart its cap is needed only to judge the answer.
 */
function capOf({ slotId, capTokens, capKind }: AttemptInFlight): Pick<StoredLease, "capTokens" | "capKind"> {
  if (capKind !== "budget" && capKind !== "learned" && slotId !== null) return {};
  return { ...(capTokens === null ? {} : { capTokens }), ...(capKind === "client" ? {} : { capKind }) };
}
