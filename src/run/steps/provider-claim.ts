/** Which slots of a group go into the next batch of their provider, with their reservations. */
import { BATCH_TIER } from "../../call.ts";
import { PROVIDER_BATCH_BYTES_MAX, PROVIDER_BATCH_LINES_MAX } from "../../limits.ts";
import { admissionOf, attemptsWanted, leaseFor, sentFactsOf } from "./dispatch.ts";
import { endRecalled } from "./end-slot.ts";
import { bucketOf, factsOf } from "./enqueue.ts";
import type { Group } from "../group/group.ts";
import { recallOf } from "./recall.ts";
import type { AttemptInFlight, Target } from "../leases/shard.ts";
import { attemptIdOf, slotIdOf, type SlotFacts } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";
import { mayPause } from "./paused.ts";
import { batchTargetOf } from "./batch-target.ts";
import { tieredFacts } from "./sent-tier.ts";

/**
 * The leases of a page: of one model under one key, because a batch has one model. `later`: slots wait for reservations in
 * flight, for their bodies, or for the run to go on. `none`: no slot waits here, and none will.
 */
export type ProviderPage = AttemptInFlight[] | "later" | "none";

type Taken = "leased" | "skipped" | "later" | "full";

/** Claims a page. One that was claimed before is returned as it is by now: the reply to the first claim may be lost. */
export function claimPage(state: EngineState, group: Group, page: number, nowMs: number): ProviderPage {
  const { provider } = group;
  const known = provider?.page(page);
  if (known !== undefined) return known;
  if (provider === null || group.drained !== null || provider.unclaimed.size === 0) return "none";
  if (nowMs >= provider.liveAtMs) return "none";
  if (state.isPaused || !group.mayStart) return "later";
  const claim = new PageClaim(state, group, nowMs);
  for (const index of [...provider.unclaimed]) {
    const taken = claim.take(index);
    if (taken === "full" || group.drained !== null) break;
  }
  if (claim.leases.length > 0) {
    provider.addPage(page, claim.leases);
    return claim.leases;
  }
  return provider.unclaimed.size === 0 ? "none" : "later";
}

/** Sends the slots live that nobody has claimed by then. Returns whether there are any. */
export function releaseUnclaimed(state: EngineState, nowMs: number): boolean {
  let hasReleased = false;
  for (const group of state.groups.values()) {
    const { provider } = group;
    if (provider === null || provider.unclaimed.size === 0 || nowMs < provider.liveAtMs) continue;
    for (const index of provider.takeUnclaimed()) sendLive(state, group, index);
    hasReleased = true;
  }
  return hasReleased;
}

/** Queues a slot to be sent like any other. */
export function sendLive(state: EngineState, group: Group, index: number): void {
  group.provider?.drop(index);
  state.queue.push(bucketOf(state, group, factsOf(state, group, index)), slotIdOf(group.header.seq, index));
}

class PageClaim {
  readonly leases: AttemptInFlight[] = [];
  readonly #state: EngineState;
  readonly #group: Group;
  readonly #nowMs: number;
  #target: Target | null = null;
  #bytes = 0;

  constructor(state: EngineState, group: Group, nowMs: number) {
    this.#state = state;
    this.#group = group;
    this.#nowMs = nowMs;
  }

  take(index: number): Taken {
    const slotId = slotIdOf(this.#group.header.seq, index);
    const recalled = recallOf(this.#state, slotId);
    if (recalled === "awaited") return "later";
    if (recalled !== null) {
      this.#group.provider?.drop(index);
      endRecalled(this.#state, slotId, recalled, this.#nowMs);
      return "skipped";
    }
    const body = this.#state.deps.bodyOf?.(slotId) ?? "here";
    if (body === "awaited") return "later";
    const { facts } = sentFactsOf(this.#state, this.#group, slotId);
    const target = batchTargetOf(this.#state, this.#group, facts);
    if (target === null || body === "lost") return this.#leave(index);
    if (this.#target !== null && !isSame(target, this.#target)) return "skipped";
    return this.#lease(index, facts, target);
  }

  #lease(index: number, untiered: SlotFacts, target: Target): Taken {
    const state = this.#state;
    const { header } = this.#group;
    const facts = tieredFacts(untiered, BATCH_TIER);
    const rules = { share: header.share, isWhole: mayPause(this.#group), attemptsWanted: attemptsWanted(state) };
    const decided = admissionOf({ facts, target, rules, isInFlight: () => false }, state, this.#nowMs);
    if (decided.kind === "wait") return "full";
    // Dispatch refuses it, or lets its group pause, as it does with any other.
    if (decided.kind === "refuse") return this.#leave(index);
    const slotId = slotIdOf(header.seq, index);
    const attemptId = attemptIdOf(slotId, 1);
    if (!state.ledger.reserve(attemptId, decided.amounts)) throw new Error(`${attemptId} cannot be reserved`);
    const start = {
      attemptId,
      slotId,
      attempt: 1,
      target,
      facts,
      queuedAtMs: header.openedAtMs,
      onLost: header.onLost,
    };
    const lease = leaseFor(start, decided, this.#nowMs);
    // Its gate counts calls that are sent now, which a batch is not.
    this.leases.push({ ...lease, gateTokens: null, tier: BATCH_TIER });
    this.#target = target;
    this.#bytes += facts.promptBytes;
    const isFull = this.leases.length >= PROVIDER_BATCH_LINES_MAX || this.#bytes >= PROVIDER_BATCH_BYTES_MAX;
    return isFull ? "full" : "leased";
  }

  #leave(index: number): Taken {
    sendLive(this.#state, this.#group, index);
    return "skipped";
  }
}

function isSame(one: Target, other: Target): boolean {
  return one.model === other.model && one.gate === other.gate;
}
