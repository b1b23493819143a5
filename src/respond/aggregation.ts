/** What the answers of a group are combined to: read once more, in input order, after the group has ended. */
import { aggregatorOf, type AggregateResult, type AggregateSpec } from "../aggregate/aggregate.ts";
import { winnerOf } from "../aggregate/vote.ts";
import { ANSWER_JSON_CHARS_MAX } from "../limits.ts";
import type { GroupView, SlotView } from "../run-api/groups.ts";
import { endIndexOf, slotPages } from "./slot-pages.ts";

type Source = { group: Pick<GroupView, "count">; slotsFrom: (index: number) => Promise<SlotView[]> };

/** The result on the wire. */
export type Aggregation = AggregateResult | (AggregateResult & { winner: unknown });

/** Combines the answers of a group that has ended. Slots that were cancelled or skipped are no members. */
export async function aggregationOf(spec: AggregateSpec, { group, slotsFrom }: Source): Promise<Aggregation> {
  const aggregator = aggregatorOf(spec);
  for await (const slots of slotPages({ count: endIndexOf(group), slotsFrom })) {
    for (const { index, id, state, text } of slots) {
      if (state !== "completed" && state !== "failed") continue;
      const completed = state === "completed";
      aggregator.add({ index, id, completed, text: completed ? (text ?? "") : "" });
    }
  }
  const result = aggregator.result();
  if (result.strategy !== "vote" || spec.strategy !== "vote") return result;
  const { winner_index: at } = result;
  const [first] = at === null ? [] : await slotsFrom(at);
  // A longer answer is in `results`, at `winner_index`.
  const text = first?.text?.slice(0, ANSWER_JSON_CHARS_MAX) ?? "";
  return { ...result, winner: at === null ? null : winnerOf(text, spec.comparison) };
}
