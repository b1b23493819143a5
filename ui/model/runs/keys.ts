/** The keys of upstreams that do not take calls, or those of a model, as fast as they arrive, in sentences. */
import type { Json } from "../../api.ts";
import { countText, durationText } from "../format.ts";
import { isRecord, numberOf, objectOf, textOf } from "../line.ts";

/** `isStopped`: the provider refuses it; else it is only slower than asked. */
export type LimitedKey = { name: string; upstream: string; isStopped: boolean; text: string };

const REASONS: Readonly<Record<string, string>> = {
  requests_per_minute: "its limit of requests per minute is reached",
  tokens_per_minute: "its limit of tokens per minute is reached",
  width: "it answers slower or refuses when more are in flight",
  insufficient_quota: "its account has no credit",
  invalid_key: "the provider does not know the key",
  forbidden: "the provider forbids the key what calls ask for",
};

/** An entry of `GET /upstreams`; null = the key is open, for all of its models. */
export function limitedKey(gate: Json, nowMs: number): LimitedKey | null {
  const state = textOf(gate, "class") ?? "open";
  const busy = busyText(gate);
  if (state === "open" && busy === null) return null;
  const [upstream, key, reason] = [textOf(gate, "name") ?? "", textOf(gate, "key"), textOf(gate, "reason")];
  const name = key === null ? upstream : `${upstream} ${key}`;
  const waiting = numberOf(gate, "waiting");
  const waits = waiting === 0 ? "" : `; ${countText(waiting)} ${waiting === 1 ? "call waits" : "calls wait"}`;
  if (state === "open") return { name, upstream, isStopped: false, text: `open, but ${busy}` };
  if (state === "stopped") {
    const stopped = objectOf(gate, "stopped");
    const said = textOf(stopped, "message") ?? REASONS[reason ?? ""] ?? reason ?? "the provider refuses it";
    return { name, upstream, isStopped: true, text: `stopped: ${said}${probeText(stopped, nowMs)}${waits}` };
  }
  const width = numberOf(gate, "width");
  const atMost = width === 0 ? "" : ` to ${countText(Math.floor(width))} in flight`;
  const why = REASONS[reason ?? ""] ?? textOf(objectOf(gate, "last_error"), "message");
  const what = state === "shrunk" ? `shrunk${atMost}` : "paced";
  const also = busy === null ? "" : `; ${busy}`;
  return { name, upstream, isStopped: false, text: `${what}${why == null ? "" : `: ${why}`}${waits}${also}` };
}

/** The models that are overloaded by themselves; null = none is. */
function busyText({ busy_models: listed }: Json): string | null {
  if (!Array.isArray(listed)) return null;
  const names = listed.flatMap((each: unknown) => (isRecord(each) ? (textOf(each, "model") ?? []) : []));
  if (names.length === 0) return null;
  const [verb, whose] = names.length === 1 ? ["is", "its"] : ["are", "their"];
  return `${names.join(", ")} ${verb} overloaded: few of ${whose} calls run at once, and those of other models go on`;
}

function probeText(stopped: Readonly<Record<string, unknown>>, nowMs: number): string {
  const probeMs = Date.parse(textOf(stopped, "next_probe_at") ?? "");
  if (Number.isNaN(probeMs)) return "";
  return probeMs <= nowMs ? "; the next call tries it" : `; tried again in ${durationText(probeMs - nowMs)}`;
}
