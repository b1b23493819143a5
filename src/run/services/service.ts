/**
 * Groups that serve another group of their run: a group of one call, whose end does something to the group that it serves. Each kind of
 * service is a file beside this one; `table.ts` lists them, and the rest of the run knows none by its name. The turn that makes a call
 * due also opens it, so a restart neither repeats nor loses the call.
 */
import type { Group } from "../group/group.ts";
import type { ServiceKind, Serves } from "../group/serves.ts";
import type { SlotRecord } from "../group/record.ts";

/** A call to open. `name`: distinct among the services of the run, so that the same call is not opened twice. */
export type DueCall<Kind extends ServiceKind = ServiceKind> = {
  serves: Serves<Kind>;
  name: string;
  call: ServiceCall;
};

/** What the call asks, as a client would. `path`: where its settings are in the request of the group that it serves. */
export type ServiceCall = {
  prompt: string;
  settings: { schema: Record<string, unknown>; priority: "critical"; model?: string; max_tokens?: number };
  path: string;
};

/** A call that was opened, now or before a restart. */
export type OpenedCall<Kind extends ServiceKind = ServiceKind> = { serves: Serves<Kind>; seq: number; id: string };

/** How a call has ended; null = a restart has found its end, and what that did to the group that it serves is stored. */
export type ServiceEnd = Pick<SlotRecord, "state" | "text"> | null;

export type Service<Kind extends ServiceKind = ServiceKind> = {
  /** The calls that are due for a group now. A call that cannot be opened is due again when the group is looked at once more. */
  due: (served: Group) => DueCall<Kind>[];
  opened: (served: Group, call: OpenedCall<Kind>) => void;
  /** A call has ended. Returns why the group that it serves stops; null = it goes on. */
  ended: (served: Group, call: OpenedCall<Kind>, end: ServiceEnd) => string | null;
  /** The numbers of the calls that have not ended, and that the group needs no more. */
  needless: (served: Group) => number[];
  /** What is said of a call that is cancelled because it is needless. */
  needlessMessage: string;
};
