/** What the call of a group is for, if it serves another group of its run. Part of its header: a restart reads it there. */

/** What a row knows of each kind of service, beside whom it serves. */
export type ServiceFacts = {
  /** A judge decides, by the first `answers` answers, whether the other group has enough. */
  judge: { answers: number };
  /** The call of the slot `index`, made before its condition is known; it may cost `worstNanoUsd`. */
  early: { index: number; worstNanoUsd: number };
};

export type ServiceKind = keyof ServiceFacts;

/** `seq`: the number of the group that is served. */
export type Serves<Kind extends ServiceKind = ServiceKind> = {
  [As in Kind]: { seq: number; as: As } & ServiceFacts[As];
}[Kind];
