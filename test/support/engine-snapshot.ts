/** What an engine's rows promise to bring back, as plain data: two engines with equal snapshots go on alike. */
import { DIMENSIONS } from "../../src/budget/ledger.ts";
import type { AttemptInFlight } from "../../src/engine/shard.ts";
import type { EngineState } from "../../src/engine/state.ts";
import { followersIn, queuedIn } from "./engine-waiting.ts";

/**
 * Of a run that is to be rebuilt: unfinished groups, what is queued and what runs, the ledger and the totals. Left out is
 * what only memory holds by design: waiting clients and their grouping, what equal calls share, terms of leases, orders and peaks.
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
      costNanoUsd: group.costNanoUsd,
      drained: group.drained,
    })),
    // Who waits for an equal call's answer is queued again.
    queued: [
      ...queuedIn(state),
      ...followersIn(state).map(({ line, place }): [number, number] => [line.groupSeq, place]),
    ]
      .filter(([groupSeq]) => groupSeq !== 0)
      .sort(([, a], [, b]) => a - b),
    tried: [...state.tried].sort(([a], [b]) => a - b),
    inFlight: [...state.attempts.keys()].sort(),
    atUpstreams: ["wide", "narrow"].map((name) => state.upstreamNamed(name)?.inFlight ?? 0),
    shards: [...state.shards.values()]
      .filter((shard) => shard.totals.attempts + shard.leases.size > 0)
      .sort((a, b) => a.id - b.id)
      .map(({ id, totals, leases }) => ({
        id,
        totals: { ...totals, singleCalls: 0, groupedCalls: 0, windowGroups: 0 },
        leases: [...leases.values()].map((lease) => remembered(lease)),
      })),
  };
}

/** What a lease's row holds: of a slot's no cap, for a lane is told it once. */
function remembered(lease: AttemptInFlight): object {
  const capTokens = lease.slotId === null ? lease.capTokens : null;
  return { ...lease, capTokens, expiresAtMs: 0, startSeq: 0, dedupeKey: null };
}
