/** Reads of several gates, each by itself: one that cannot be read takes no other with it. */
import type { UnreadGate } from "../../contract/operator/upstreams.ts";
import { objectFailure } from "../../objects/clients/retry.ts";
import { NEWER_STORAGE } from "../../newer-rows.ts";
import type { GateKey } from "./gate-keys.ts";

/** A key of an upstream, by the upstream's name. */
export type NamedGate = GateKey & { name: string };

/** What was read, in order, and the keys that were not. `log`: for the operator's console. */
export async function readGates<T>(
  gates: readonly NamedGate[],
  look: (gate: NamedGate) => Promise<T>,
  log: (message: string, error: unknown) => void,
): Promise<{ read: T[]; unread: UnreadGate[] }> {
  const looks = await Promise.allSettled(gates.map(look));
  const read: T[] = [];
  const unread: UnreadGate[] = [];
  for (const [at, looked] of looks.entries()) {
    const { name = "", key = null } = gates[at] ?? {};
    if (looked.status === "fulfilled") read.push(looked.value);
    else {
      log(`the gate of ${name}${key === null ? "" : ` (${key})`} could not be read`, looked.reason);
      unread.push({ name, key, ...causeOf(looked.reason) });
    }
  }
  return { read, unread };
}

function causeOf(error: unknown): Pick<UnreadGate, "code" | "message" | "retryable"> {
  const failure = objectFailure(error);
  if (failure === "newer") return { code: "newer_storage", message: NEWER_STORAGE.message, retryable: false };
  if (failure === "bug") {
    const message = "its state cannot be read; the gateway's log has the cause";
    return { code: "unreadable", message, retryable: false };
  }
  return { code: "overloaded", message: "it did not answer; ask again in a few seconds", retryable: true };
}
