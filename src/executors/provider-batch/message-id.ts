/** The ids of requests in Anthropic's batches: letters, digits and hyphens, at most 64. They say to which creation a batch belongs. */
import { MESSAGE_RUN_CHARS } from "../../limits.ts";

/** How the ids begin of a batch with this tag. */
export function messagePrefix(tag: string): string {
  const [runId = "", ...rest] = tag.split("/");
  // The end of a run's id is as good as random.
  return `${runId.slice(-MESSAGE_RUN_CHARS).replace(/[^a-zA-Z0-9]/g, "-")}-${rest.join("-")}-`;
}

/** The id of the first attempt at a slot. */
export function messageIdOf(attemptId: string, prefix: string): string {
  return `${prefix}${attemptId.replace(/\.1$/, "")}`;
}

/** The attempt that an id names; null = it is another batch's. */
export function attemptOfMessageId(customId: string, prefix: string): string | null {
  const slotId = customId.startsWith(prefix) ? customId.slice(prefix.length) : "";
  return /^\d{1,16}$/.test(slotId) ? `${slotId}.1` : null;
}
