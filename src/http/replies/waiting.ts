/** What queued calls wait for, on the wire. */
import type { ShownWaiting } from "../../contract/groups.ts";
import type { Waiting, WaitingFor } from "../../run/steps/waiting-for.ts";

/** What one slot waits for. */
export function shownWaiting(waitingFor: WaitingFor): ShownWaiting {
  switch (waitingFor.kind) {
    case "gate": {
      const { gate, reason, model, readyInMs: ready_in_ms } = waitingFor;
      return { gate, reason, ...(model !== undefined && { model }), ready_in_ms };
    }
    case "budget":
      return { budget: waitingFor.dimension, ...(waitingFor.isExhausted === true && { exhausted: true }) };
    case "context":
      return { context: waitingFor.context };
    case "prefix":
      return { prefix: waitingFor.prefix };
    case "dependency":
      return { dependency: waitingFor.tasks };
    case "provider_batch":
      return { provider_batch: waitingFor.upstream };
    case "retry":
      return { retry: true, ready_in_ms: waitingFor.readyInMs };
    case "confirmation":
      return { confirmation: true };
    case "permit":
      return { permit: true };
    case "tier":
      return { tier: true };
    case "equal_call":
      return { equal_call: true };
  }
}

/** What the queued slots of a group wait for. */
export function shownWaits(waits: readonly Waiting[]): (ShownWaiting & { slots: number })[] {
  return waits.map(({ waitingFor, slots }) => ({ ...shownWaiting(waitingFor), slots }));
}
