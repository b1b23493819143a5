/**
 * The counted operations of a call at another duration and width than those that were counted. What comes with an event stays;
 * what comes with time grows with it: objects that a call holds in memory, alarms and socket messages.
 */
import type { WayIn } from "../../test/objects/cost/bounds.ts";
import { CALL_MS, EVENT_MS, type Bound } from "../../test/objects/cost/counted.ts";

/** The operations of a call of `seconds`. Fewer seconds than were counted keep the alarms and messages: an upper bound. */
export function atDuration(call: Bound, seconds: number): Bound {
  const times = (seconds * 1_000) / CALL_MS;
  const inTime = Math.max(1, times);
  const eventsS = ((call.requests + call.alarms + call.messages) * EVENT_MS) / 1_000;
  const heldS = Math.max(0, call.awakeS - eventsS) * times;
  const [alarms, messages] = [call.alarms * inTime, call.messages * inTime];
  const awakeS = heldS + ((call.requests + alarms + messages) * EVENT_MS) / 1_000;
  return { ...call, alarms, messages, awakeS };
}

/** The widths at which batches were counted, ascending. */
const COUNTED_WIDTHS = [8, 64, 512];

/**
 * Whether the counts of a way in stand for calls at `width`: those of the least counted width that is not narrower, or of the
 * widest. A way in that was counted at one width, or has none, has the same cost at all widths.
 */
export function isAtWidth(name: WayIn, width: number): boolean {
  const counted = /^\/batch, width (\d+)$/.exec(name)?.[1];
  if (counted === undefined) return true;
  const standing = COUNTED_WIDTHS.find((each) => each >= width) ?? COUNTED_WIDTHS.at(-1);
  return Number(counted) === standing;
}
