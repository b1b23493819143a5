/**
 * Rows that a later version of the gateway has written, as after a deployment was rolled back: an object of this version does not begin on
 * them. Its error crosses RPC as a message only, so its callers recognise it by that.
 */
import type { Reason } from "./errors.ts";

/** Thrown while an object begins, so that none of its methods runs. */
export function newerRows(stored: number, known: number): Error {
  return new Error(`storage has schema ${stored}, this code knows ${known}`);
}

const MESSAGE = /\bstorage has schema \d+, this code knows \d+/;

/** Whether a call to an object failed because of its rows. Each next call would, until later code is deployed. */
export function isOfNewerRows(error: unknown): boolean {
  return error instanceof Error && MESSAGE.test(error.message);
}

/** The failure that a client gets: only the operator can mend it. */
export const NEWER_STORAGE = {
  reason: "newer_storage",
  message:
    "what is stored here was written by a later version of the gateway than the deployed one, which leaves it as it is; its operator must deploy that version, or a later one, again",
} as const satisfies Reason;
