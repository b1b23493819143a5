/** The kinds of service, and what they mean together for a group that is served. */
import type { Group, GroupHeader } from "../group/group.ts";
import type { ServiceKind } from "../group/serves.ts";
import type { EngineState } from "../state.ts";
import { early } from "./early.ts";
import { judge } from "./judge.ts";
import type { DueCall, OpenedCall, Service, ServiceEffect, ServiceEnd } from "./service.ts";

const SERVICES: { readonly [Kind in ServiceKind]: Service<Kind> } = { judge, early };
const ALL = Object.values(SERVICES);

/** Whether anything may serve a group: it is looked at when one of its slots ends, and after a restart. */
export function mayBeServed(group: Group): boolean {
  return ALL.some((each) => each.mayServe(group));
}

/** The number of an open call that starts before the slots of the group; null = there is none. */
export function callBefore(served: Group): number | null {
  for (const { goesFirst } of ALL) {
    const seq = goesFirst?.(served) ?? null;
    if (seq !== null) return seq;
  }
  return null;
}

/** The calls that are due for a group now. */
export function dueCalls(served: Group, state: EngineState, nowMs: number): DueCall[] {
  return ALL.flatMap<DueCall>((each) => each.due(served, state, nowMs));
}

/** A call that a group needs no more, and what is said of it. */
export type NeedlessCall = { seq: number; message: string; isGivenUp: boolean };

/** The calls of a group that it needs no more. */
export function needlessCalls(served: Group): NeedlessCall[] {
  return ALL.flatMap(({ needless, needlessMessage: message, isGivenUp }) =>
    needless(served).map((seq) => ({ seq, message, isGivenUp })),
  );
}

/** A call was opened for a group, now or before a restart. */
export function callOpened<Kind extends ServiceKind>(served: Group, call: OpenedCall<Kind>): void {
  SERVICES[call.serves.as].opened(served, call);
}

/** A call of a group has ended, now or before a restart. */
export function callEnded<Kind extends ServiceKind>(
  served: Group,
  call: OpenedCall<Kind>,
  end: ServiceEnd,
): ServiceEffect {
  return SERVICES[call.serves.as].ended(served, call, end);
}

/** Whether the call of a group is tried once only. */
export function isTriedOnce({ serves }: GroupHeader): boolean {
  return serves !== undefined && SERVICES[serves.as].isTriedOnce;
}
