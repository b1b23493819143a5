/** A call of a tool as a model writes it, and its result as the model reads it. */
import { nestsDeeperThan, utf8Bytes } from "../contract/text.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import { isRecord } from "../text/json/record.ts";

/** The input of a call; null = it is no JSON object. A model that has nothing to say writes no arguments. */
export function readArguments(written: string): Readonly<Record<string, unknown>> | null {
  if (written.trim() === "") return {};
  try {
    const input: unknown = JSON.parse(written);
    return isRecord(input) && !nestsDeeperThan(input, JSON_DEPTH_MAX) ? input : null;
  } catch {
    return null;
  }
}

/** A result of at most so many bytes as JSON; its end is cut. */
export function cutResult(text: string, bytesMax: number): string {
  const wellFormed = text.toWellFormed();
  const bytes = utf8Bytes(JSON.stringify(wellFormed));
  if (bytes <= bytesMax) return wellFormed;
  const note = " … [cut: the result is too long]";
  const noteBytes = utf8Bytes(note);
  let kept = wellFormed;
  for (let size = bytes; size + noteBytes > bytesMax && kept !== ""; size = utf8Bytes(JSON.stringify(kept))) {
    const share = Math.max(0, bytesMax - noteBytes) / size;
    kept = kept.slice(0, Math.min(kept.length - 1, Math.floor(kept.length * share))).toWellFormed();
  }
  return kept + note;
}
