/** The kinds of service, and what they mean together for a group that is served. */
import type { Group } from "../group/group.ts";
import type { ServiceKind } from "../group/serves.ts";
import { judge } from "./judge.ts";
import type { DueCall, OpenedCall, Service, ServiceEnd } from "./service.ts";

const SERVICES: { readonly [Kind in ServiceKind]: Service<Kind> } = { judge };

/** Whether anything may serve a group: it is looked at when one of its slots ends, and after a restart. */
export function mayBeServed({ judgedStop }: Group): boolean {
  return judgedStop !== null;
}

/** The calls that are due for a group now. */
export function dueCalls(served: Group): DueCall[] {
  return Object.values(SERVICES).flatMap((each) => each.due(served));
}

/** The calls of a group that it needs no more, with what is said of them. */
export function needlessCalls(served: Group): { seq: number; message: string }[] {
  return Object.values(SERVICES).flatMap(({ needless, needlessMessage: message }) =>
    needless(served).map((seq) => ({ seq, message })),
  );
}

/** A call was opened for a group, now or before a restart. */
export function callOpened<Kind extends ServiceKind>(served: Group, call: OpenedCall<Kind>): void {
  SERVICES[call.serves.as].opened(served, call);
}

/** A call of a group has ended, now or before a restart. Returns why the group stops; null = it goes on. */
export function callEnded<Kind extends ServiceKind>(
  served: Group,
  call: OpenedCall<Kind>,
  end: ServiceEnd,
): string | null {
  return SERVICES[call.serves.as].ended(served, call, end);
}
