/** The time that an object's alarm is set to. */

/**
 * The time to set an alarm to that is wanted at `wantedMs`, epoch ms: a whole millisecond, and never the present one. The platform knows an
 * alarm by its time, in whole milliseconds. A handler that sets the alarm to the time at which it was itself due therefore
 * changes nothing: the alarm is deleted when the handler ends, and `getAlarm` shows it for ever. An alarm may fire in the
 * millisecond in which it is due, so that this is what "now" is for its handler, and for calls that arrive meanwhile.
 */
export function alarmMs(wantedMs: number, nowMs: number): number {
  return Math.max(Math.ceil(wantedMs), nowMs + 1);
}
