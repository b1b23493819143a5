/** What dispatch does about the prefix that a call shares with others. */
import type { CallFacts } from "../../call.ts";
import { WARM_MS_DEFAULT } from "../../limits.ts";
import type { AttemptInFlight, PrefixAt, Target } from "../leases/shard.ts";
import type { EngineState } from "../state.ts";

/** The prefix of a call as its target caches it; null = it shares none, or it is too short. */
export function prefixAt({ shared, cacheTtl }: CallFacts, target: Target): PrefixAt | null {
  const { cache, upstream, model } = target;
  if (shared === undefined || cache === undefined) return null;
  const isOwn = shared.own === true;
  // A client that has marked something else gets no further marks.
  if (cacheTtl !== undefined && !isOwn) return null;
  if (shared.tokens < cache.minTokens) return null;
  const { key, warmMs: waitMs = WARM_MS_DEFAULT } = shared;
  const ttl = isOwn ? cacheTtl : shared.ttl;
  const keptMs = ttl === "1h" && cache.mark === "cache_control" ? 3_600_000 : cache.keptMs;
  const by = cache.mark;
  const mark = by === null || isOwn ? {} : { mark: { by, key: subjectOf(key), ...(ttl === undefined ? {} : { ttl }) } };
  return { name: `${key} ${upstream}/${model}`, ...mark, keptMs, waitMs };
}

/** The text that a prefix is about: the id of its context, or a name of its system message. OpenAI takes keys of up to 64 characters. */
export function subjectOf(key: string): string {
  return key.split(":", 1).join("");
}

/**
 * The prefix of a single call. It is unknown whether another call follows, so the first of a run is sent unchanged; from the second
 * on, calls share what the second one writes. What its client has marked is written anyway, so there the first one leads.
 */
export function prefixOfCall({ prefixes }: Known, facts: CallFacts, target: Target | null): PrefixAt | null {
  const prefix = target === null ? null : prefixAt(facts, target);
  return prefix !== null && (facts.shared?.own === true || prefixes.wasSent(prefix.name)) ? prefix : null;
}

/** Notes that a call with its prefix has been sent. */
export function noteSent({ prefixes }: Known, facts: CallFacts, target: Target): void {
  const prefix = prefixAt(facts, target);
  if (prefix !== null) prefixes.sent(prefix.name);
}

type Known = Pick<EngineState, "prefixes">;

/** The facts of a call whose prefix the gateway marks: what its provider may bill for the mark is reserved. */
export function markedFacts<Facts extends CallFacts>(facts: Facts, prefix: PrefixAt | null): Facts {
  if (prefix?.mark?.by !== "cache_control") return facts;
  return { ...facts, cacheTtl: prefix.mark.ttl ?? "5m" };
}

/** Notes that an attempt starts; what its executor must know of its prefix. */
export function startWithPrefix(
  { prefixes }: Pick<EngineState, "prefixes">,
  { attemptId }: Pick<AttemptInFlight, "attemptId">,
  prefix: PrefixAt,
  nowMs: number,
): Pick<AttemptInFlight, "prefix"> {
  const leads = prefixes.start(prefix.name, { attemptId, waitMs: prefix.waitMs }, nowMs);
  return { prefix: { ...prefix, leads } };
}
