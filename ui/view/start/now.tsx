import type { Json } from "../../api.ts";
import { callsText, countText, rateText, usdText } from "../../model/format.ts";
import { isRecord, numberOf, textOf } from "../../model/line.ts";

/** What works now, and what today has brought. Nothing is shown as zero before it is known. */
export function Now({ overview }: { overview: Json | null }) {
  const of = (name: string): number => numberOf(overview ?? {}, name);
  const text = (value: string): string => (overview === null ? "…" : value);
  const note = (value: string): string => (overview === null ? "" : value);
  const failed = of("failed");
  return (
    <section aria-label="Now" aria-busy={overview === null}>
      <h2 class="away">Now</h2>
      <dl class="tiles">
        <Tile name="working" value={text(countText(of("working")))} note={note(`of ${countText(of("runs"))} runs`)} />
        <Tile
          name="in flight"
          value={text(countText(of("in_flight")))}
          note={note(`${countText(of("queued"))} queued`)}
        />
        <Tile name="calls per second" value={text(rateText(of("calls_per_second")))} />
        <Tile name="$ per minute" value={text(usdText(of("usd_per_minute")))} />
        <Tile name="spent today" value={text(usdText(of("spent_usd")))} note={note(callsText(of("attempts")))} />
        <Tile
          name="failed today"
          value={text(countText(failed))}
          note={note(failuresText(overview))}
          class={failed > 0 ? "bad" : ""}
        />
      </dl>
      {overview !== null && overview["complete"] === false && (
        <p class="dim note">A part of the list of runs did not answer or has too many runs: these sums lack some.</p>
      )}
    </section>
  );
}

function failuresText(overview: Json | null): string {
  const listed = overview?.["failures"];
  const codes = Array.isArray(listed) ? listed.filter(isRecord) : [];
  if (codes.length === 0) return "calls";
  const [first, second] = codes.map((each) => `${countText(numberOf(each, "calls"))} ${textOf(each, "code") ?? ""}`);
  return [first, second].filter((each) => each !== undefined).join(", ");
}

function Tile({
  name,
  value,
  note = "",
  class: kind = "",
}: {
  name: string;
  value: string;
  note?: string;
  class?: string;
}) {
  return (
    <div class={`tile ${kind}`}>
      <dt>{name}</dt>
      <dd>
        {value} <small>{note}</small>
      </dd>
    </div>
  );
}
