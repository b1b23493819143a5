/**
 * The rules of groups, and what those of one group mean together. The rest of the run knows none by its name, but for tiers, which hold
 * slots back, and the judge, whose calls serve the group: they are found by their class.
 */
import { abort, type AbortFacts, type AbortRequest } from "./abort.ts";
import { atLeast, type AtLeastFacts } from "./at-least.ts";
import { ballot, type BallotFacts, type BallotRequest } from "./ballot.ts";
import { earlyStop, type EarlyStopFacts } from "./early-stop.ts";
import { judgedStop, type JudgedStopFacts } from "./judged-stop.ts";
import { tiers, type TiersFacts } from "./tiers.ts";
import type {
  ActiveRule,
  EndedSlot,
  FailedSlot,
  GroupEnding,
  GroupVerdict,
  Rule,
  RuledGroup,
  RuleEffect,
  ShownByRules,
  Stopping,
} from "./rule.ts";

/** What the request that opens a group says of its rules. */
export type RequestedRules = EarlyStopFacts &
  JudgedStopFacts &
  AbortRequest &
  BallotRequest &
  TiersFacts &
  AtLeastFacts;

/** What the row of a group keeps of its rules. */
export type StoredRules = EarlyStopFacts & JudgedStopFacts & AbortFacts & BallotFacts & TiersFacts & AtLeastFacts;

/**
 * In the order in which they are asked: the first that decides how a group ends does, and what has failed is reported before the group
 * stops for it.
 */
const RULES: readonly Rule<RequestedRules, StoredRules>[] = [earlyStop, judgedStop, ballot, tiers, abort, atLeast];

/** The field of a group's row that has its rules; nothing if its client asks for none. */
export function rulesOfRequest(request: RequestedRules): { rules?: StoredRules } {
  return together(RULES.map((rule) => rule.stored(request)));
}

/** The same for the retry of a group with these rules. */
export function rulesOfRetry(stored: StoredRules | undefined): { rules?: StoredRules } {
  return stored === undefined ? {} : together(RULES.map((rule) => rule.again(stored)));
}

function together(parts: readonly StoredRules[]): { rules?: StoredRules } {
  const rules = parts.reduce<StoredRules>((all, part) => ({ ...all, ...part }), {});
  return Object.keys(rules).length === 0 ? {} : { rules };
}

/** How a group with these rules stops early; null = it runs to its end. */
export function stoppingOf(stored: StoredRules | undefined): Stopping | null {
  if (stored === undefined) return null;
  for (const rule of RULES) {
    const stopping = rule.stopping?.(stored) ?? null;
    if (stopping !== null) return stopping;
  }
  return null;
}

const NO_EFFECTS: readonly RuleEffect[] = [];

/** The rules of one group. */
export class GroupRules {
  readonly #active: readonly ActiveRule[];

  constructor(stored: StoredRules | undefined, group: RuledGroup) {
    this.#active = stored === undefined ? [] : RULES.flatMap((rule) => rule.of(stored, group) ?? []);
  }

  get areAny(): boolean {
    return this.#active.length > 0;
  }

  /** The rule of this class; null = the group has none. */
  find<Kind extends ActiveRule>(kind: new (...args: never[]) => Kind): Kind | null {
    for (const rule of this.#active) if (rule instanceof kind) return rule;
    return null;
  }

  /** Attempts that may be in flight now. */
  get width(): number {
    let width = Infinity;
    for (const rule of this.#active) width = Math.min(width, rule.width?.() ?? Infinity);
    return width;
  }

  /** Whether the end of a slot with an answer may stop the group. */
  get mayStop(): boolean {
    return this.#active.some((rule) => rule.mayStop === true);
  }

  /** Whether they must be told, after a restart, of the slots that ended before. */
  get remembersEnds(): boolean {
    return this.#active.some((rule) => rule.remembersEnds?.() === true);
  }

  /** A slot has ended, now or before a restart: all rules are told before anything follows. */
  slotEnded(slot: EndedSlot): readonly RuleEffect[] {
    if (this.#active.length === 0) return NO_EFFECTS;
    return this.#active.flatMap((rule) => rule.onSlotEnd?.(slot) ?? []);
  }

  /** Slots have failed, and nothing answers for them. */
  slotsFailed(failed: readonly FailedSlot[]): readonly RuleEffect[] {
    if (this.#active.length === 0) return NO_EFFECTS;
    return this.#active.flatMap((rule) => rule.onFailure?.(failed) ?? []);
  }

  /** How the group has ended, if a rule decides that; else null. */
  verdict(ending: GroupEnding): GroupVerdict | null {
    for (const rule of this.#active) {
      const verdict = rule.onGroupEnd?.(ending) ?? null;
      if (verdict !== null) return verdict;
    }
    return null;
  }

  /** What the row of the group and its readers are told. */
  get shown(): ShownByRules {
    return this.#active.reduce<ShownByRules>((all, rule) => ({ ...all, ...rule.shown?.() }), {});
  }
}
