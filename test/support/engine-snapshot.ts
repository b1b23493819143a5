/** The state that an engine's rows must restore, as plain data: two engines with equal snapshots continue alike. */
import { DIMENSIONS } from "../../src/run/money/ledger.ts";
import type { AttemptInFlight } from "../../src/run/leases/shard.ts";
import type { EngineState } from "../../src/run/state.ts";
import { GATES } from "./engine-plan.ts";
import { followersIn, queuedIn } from "./engine-waiting.ts";

/**
 * The state of a run to be rebuilt: unfinished groups, queue, attempts in flight, ledger and totals. Left out is the
 * state that is kept in memory only: waiting clients and their windows, followers, terms of leases, orders and peaks.
 */
export function snapshotOf(state: EngineState): unknown {
  const { spent, reserved } = state.ledger;
  const groups = [...state.groups.values()].filter((group) => !group.done);
  return {
    money: DIMENSIONS.map((dimension) => [dimension, spent[dimension], reserved[dimension]]),
    groups: groups.map((group) => ({
      header: group.header,
      states: Array.from({ length: group.header.count }, (_, index) => group.stateOf(index)),
      attempts: [...group.attempts],
      counts: { ...group.counts },
      inFlight: group.inFlight,
      sequentialMs: group.sequentialMs,
      usage: { ...group.usage },
      drained: group.drained,
    })),
    // Followers are queued slots after a restart.
    queued: [...queuedIn(state), ...followersIn(state).map(({ bucket, id }): [number, number] => [bucket.groupSeq, id])]
      .filter(([groupSeq]) => groupSeq !== 0)
      .sort(([, a], [, b]) => a - b),
    // Positions among choices are kept in memory only.
    tried: [...state.tried].sort(([a], [b]) => a - b).map(([id, record]) => [id, { ...record, position: null }]),
    inFlight: [...state.attempts.keys()].sort(),
    atGates: GATES.map((name) => state.upstreams.get(name)?.inFlight ?? 0),
    shards: [...state.shards.values()]
      .filter((shard) => shard.totals.attempts + shard.leases.size > 0)
      .sort((a, b) => a.id - b.id)
      .map(({ id, totals, leases }) => ({
        id,
        totals: { ...structuredClone(totals), singleCalls: 0, groupedCalls: 0, windowGroups: 0 },
        leases: [...leases.values()].map((lease) => remembered(lease)),
      })),
  };
}

/** The stored fields of a lease. A slot has no cap there unless an answer that ends at it is treated specially. */
function remembered(lease: AttemptInFlight): object {
  const kept = lease.slotId === null || lease.capKind === "budget" || lease.capKind === "learned";
  const cap = kept ? {} : { capTokens: null, capKind: "client" };
  const { chosenFrom: _, window: __, ...stored } = lease;
  return { ...stored, ...cap, expiresAtMs: 0, startSeq: 0, dedupeKey: null, gateTokens: null };
}
