/** The facts of the chosen row, and the beginnings of its call's prompt and answer, once a reader stays at it. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Json } from "../api.ts";
import type { Call } from "../../src/log/picture/call.ts";
import { endedIn } from "../../src/log/picture/group.ts";
import { nameOf, queueMsOf } from "../model/call.ts";
import { durationText, exactUsdText } from "../model/format.ts";
import { textOf } from "../model/line.ts";
import type { Row } from "../model/rows.ts";
import type { Place } from "./row-list.tsx";

/** Reads one call of a group. */
export type Look = (group: string, index: number) => Promise<Json>;

/** How long a reader stays at a row before its texts are read, ms: a pointer that passes by costs nothing. */
const STAY_MS = 300;

type Texts = { prompt: string | null; answer: string | null };

type Props = { row: Row | null; place: Place | null; nowMs: number; look: Look | undefined };

/** Beside the pointer: on the side where there is room. */
function styleAt({ x, y, width, height }: Place): Record<string, string> {
  const across: Record<string, string> =
    x > width / 2 ? { right: `${width - x + GAP_PX}px` } : { left: `${x + GAP_PX}px` };
  const down: Record<string, string> =
    y > height / 2 ? { bottom: `${height - y + GAP_PX}px` } : { top: `${y + GAP_PX}px` };
  return { ...across, ...down };
}

const GAP_PX = 14;

export function Details({ row, place, nowMs, look }: Props) {
  const texts = useSignal<Texts | null>(null);
  const call = row?.kind === "call" ? row.call : null;
  const hasEnded = call !== null && call.endMs !== null;
  useEffect(() => {
    texts.value = null;
    const { group = null, index = null } = call ?? {};
    if (look === undefined || group === null || index === null) return;
    let isGone = false;
    const due = setTimeout(() => {
      look(group, index)
        .then((json) => {
          if (!isGone) texts.value = { prompt: textOf(json, "prompt_head"), answer: textOf(json, "result_head") };
        })
        // Its figures are there all the same.
        .catch(() => undefined);
    }, STAY_MS);
    return () => {
      isGone = true;
      clearTimeout(due);
    };
  }, [call, hasEnded]);
  return (
    <div class={row === null ? "details none" : "details"} role="status" style={place === null ? {} : styleAt(place)}>
      <Facts row={row} nowMs={nowMs} />
      {texts.value !== null && texts.value.prompt !== null && (
        <p>
          <b>Prompt</b> {texts.value.prompt}
        </p>
      )}
      {texts.value !== null && texts.value.answer !== null && (
        <p>
          <b>Answer</b> {texts.value.answer}
        </p>
      )}
    </div>
  );
}

function Facts({ row, nowMs }: { row: Row | null; nowMs: number }) {
  if (row === null) return null;
  if (row.kind === "call") return <CallFacts call={row.call} nowMs={nowMs} />;
  const { id, status, count } = row.group;
  return (
    <p>
      <code>{id}</code> {status ?? "running"}: {endedIn(row.group)} of {count} ended
    </p>
  );
}

function CallFacts({ call, nowMs }: { call: Call; nowMs: number }) {
  return (
    <>
      <p>{factsOf(call, nowMs)}</p>
      {call.code !== null && (
        <p class="bad">
          {call.code}: {call.message}
        </p>
      )}
    </>
  );
}

function factsOf(call: Call, nowMs: number): string {
  const attempts = call.attempts.map(({ startMs, endMs, outcome, target }) => {
    const took = durationText((endMs ?? nowMs) - startMs);
    return `${target} ${outcome ?? "in flight"} ${took}`;
  });
  const queued = durationText(queueMsOf(call, nowMs));
  const made = call.replayed ? "a recorded answer" : attempts.join(", ");
  const labels = call.labels.length === 0 ? "" : ` (${call.labels.join(", ")})`;
  return `${nameOf(call)}${labels}: ${call.state}, queued ${queued}, ${exactUsdText(call.costUsd)}; ${made}`;
}
