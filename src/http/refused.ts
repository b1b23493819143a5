/** Which errors of a handler refuse its request. */
import { Refusal, type Reason } from "../errors.ts";
import { DISK_FULL_RETRY_MS, OBJECT_OUTDATED_RETRY_MS, OBJECT_OVERLOADED_RETRY_MS } from "../limits.ts";
import { objectFailure } from "../objects/clients/retry.ts";
import { NEWER_STORAGE } from "../newer-rows.ts";

/** Of an object that is not a run's: calls to those have a message of their own. */
const OBJECT_OVERLOADED: Reason = {
  reason: "overloaded",
  message: "an object of the gateway has more requests than it can take; retry later",
  retryAfterMs: OBJECT_OVERLOADED_RETRY_MS,
};

/** Of an object that a deploy has not replaced yet, or has already replaced. */
const OBJECT_OUTDATED: Reason = {
  reason: "overloaded",
  message: "an object of the gateway is of another version while a new one is deployed; retry later",
  retryAfterMs: OBJECT_OUTDATED_RETRY_MS,
};

/** Of an object, or of R2's stand-in on this disk, that found no room for what it must store. */
const DISK_FULL: Reason = {
  reason: "storage_full",
  message: "the disk of the gateway is full, so this was not stored; its operator must free some space; retry later",
  retryAfterMs: DISK_FULL_RETRY_MS,
};

/** Why an error refuses the request; null for one that nobody expected. An overloaded object is not called again. */
export function refusedFor(error: Error): Reason | null {
  if (error instanceof Refusal) return error.reason;
  switch (objectFailure(error)) {
    case "overloaded":
      return OBJECT_OVERLOADED;
    case "outdated":
      return OBJECT_OUTDATED;
    case "full":
      return DISK_FULL;
    case "newer":
      return NEWER_STORAGE;
    case "reset":
    case "bug":
      return null;
  }
}
