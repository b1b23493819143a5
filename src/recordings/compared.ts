/**
 * What the options of a call mean for two calls that are equal but for them: whether both may share an answer while they are in flight
 * (`dedupe`), and whether one may have the recorded answer of the other (`replay`). The compiler requires a line for each option.
 */
import type { DispatchOptions } from "../call.ts";
import { LABEL_NAMES, type CallLabels } from "../labels.ts";

type Option = Exclude<keyof DispatchOptions, keyof CallLabels>;

type Comparison = {
  /** Whether calls in flight must have the same value to share an answer. */
  inFlight: boolean;
  /** The name in the content of a recorded answer, of an option that decides it; absent = an answer serves calls with any value. */
  recordedAs?: string;
};

const COMPARED: Comparison = { inFlight: true };
/** It concerns only when a call is made, and how long it may take. */
const FREE: Comparison = { inFlight: false };

const OPTIONS: { readonly [Name in Option]-?: Comparison } = {
  // The key of a recorded answer has the route beside the content.
  model: COMPARED,
  maxTokens: { inFlight: true, recordedAs: "cap" },
  priority: FREE,
  timeoutMs: FREE,
  reserve: COMPARED,
  tier: FREE,
  schemaRetries: COMPARED,
  cascade: COMPARED,
  sampling: COMPARED,
  toolUse: COMPARED,
  wantedTier: { inFlight: true, recordedAs: "service_tier" },
  hedge: COMPARED,
};

const RULES = Object.entries<Comparison>(OPTIONS);

/** Facts in which calls may differ that share an answer in flight: labels among them. */
export const NOT_COMPARED: readonly string[] = [
  ...RULES.flatMap(([name, { inFlight }]) => (inFlight ? [] : [name])),
  ...LABEL_NAMES,
];

/** What the content of a recorded answer calls the options that decide it. */
const RECORDED_AS: ReadonlyMap<string, string> = new Map(
  RULES.flatMap(([name, { recordedAs }]) => (recordedAs === undefined ? [] : [[name, recordedAs] as const])),
);

/** The options of a call that decide its recorded answer, by their names in its content. */
export function recordedOptions(options: Partial<DispatchOptions>): Record<string, unknown> {
  const deciding = Object.entries(options).flatMap(([option, value]) => {
    const name = RECORDED_AS.get(option);
    return name === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(deciding);
}
