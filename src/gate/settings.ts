/** How a gate finds the width of an upstream that rejects calls without saying when to come again. */

/**
 * `aimd`: the width falls by a factor with rejected calls and rises by steps with answered ones. `penalty`: the width is
 * divided by a penalty plus 1, which grows with weighted failures and decays. `off`: the width of the runs is all there is.
 */
export type Adaptive = { mode: "aimd" } | { mode: "off" } | ({ mode: "penalty" } & PenaltySettings);

/** The settings of the mode `penalty`. */
export type PenaltySettings = {
  /** What one failure adds to the penalty. */
  weights: { rateLimited: number; overloaded: number; timeout: number; schemaViolation: number };
  /** By which law the penalty falls: 1 per `decayMs`; by half per `decayMs`; or above 5 by 30 %, and by 1 below. */
  decay: "linear" | "exponential" | "hybrid";
  /** 0 = failures never narrow the width. */
  maxPenalty: number;
  decayMs: number;
};

/** What a gate knows of its upstream from the configuration. */
export type GateSettings = { adaptive: Adaptive; maxInFlight: number };
