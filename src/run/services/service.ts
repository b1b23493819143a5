/**
 * Groups that serve another group of their run: a group of one call, whose end does something to the group that it serves. Each kind of
 * service is a file beside this one; `table.ts` lists them, and the rest of the run knows none by its name. The turn that makes a call
 * due also opens it, so a restart neither repeats nor loses the call.
 */
import type { EarlyEnd } from "../group/early-calls.ts";
import type { Group } from "../group/group.ts";
import type { ServiceKind, Serves } from "../group/serves.ts";
import type { SlotFacts } from "../queue/slot.ts";
import type { EngineState } from "../state.ts";

/** A call to open. `name`: distinct among the services of the run, so that the same call is not opened twice. */
export type DueCall<Kind extends ServiceKind = ServiceKind> = {
  serves: Serves<Kind>;
  name: string;
  call: ServiceCall;
};

/**
 * What the call asks. `prompt`: a text, as a client would; `path`: where its settings are in the request of the group that it serves.
 * `slot`: the call of a slot of that group, with these facts, under the client's name for it; it goes behind all other calls of the run.
 */
export type ServiceCall =
  | {
      kind: "prompt";
      prompt: string;
      settings: { schema: Record<string, unknown>; priority: "critical"; model?: string; max_tokens?: number };
      path: string;
    }
  | { kind: "slot"; slotId: number; facts: SlotFacts; id: string };

/** A call that was opened, now or before a restart. */
export type OpenedCall<Kind extends ServiceKind = ServiceKind> = { serves: Serves<Kind>; seq: number; id: string };

/** How a call has ended. `text` null: it has none, or a restart has found its end; what that did to the served group is stored. */
export type ServiceEnd = EarlyEnd & { text: string | null };

/** What the end of a call does. `stop`: the group that it serves has met this rule. `released`: a slot of it that waits goes on. */
export type ServiceEffect = { kind: "stop"; rule: string } | { kind: "released"; index: number } | null;

export type Service<Kind extends ServiceKind = ServiceKind> = {
  /** Whether it may serve a group: that is looked at when one of its slots ends, and after a restart. */
  mayServe: (group: Group) => boolean;
  /** The calls that are due for a group now. A call that cannot be opened is due again when the group is looked at once more. */
  due: (served: Group, state: EngineState, nowMs: number) => DueCall<Kind>[];
  opened: (served: Group, call: OpenedCall<Kind>) => void;
  ended: (served: Group, call: OpenedCall<Kind>, end: ServiceEnd) => ServiceEffect;
  /** The number of an open call whose answer may make slots of the group needless: it starts before them. Absent = no call does. */
  goesFirst?: (served: Group) => number | null;
  /** The numbers of the calls that have not ended, and that the group needs no more. */
  needless: (served: Group) => number[];
  /** What is said of a call that is cancelled because it is needless. */
  needlessMessage: string;
  /** Whether a needless call in flight is given up where that costs no more than its answer; else it ends by itself. */
  isGivenUp: boolean;
  /** Whether no second attempt follows the first, however that ends. */
  isTriedOnce: boolean;
};
