/** What the answers of a group are combined to: read once more, in input order, after the group has ended. */
import { aggregatorOf, modelsOfCalls, type AggregateResult, type AggregateSpec } from "../../run/answers/aggregate.ts";
import { CombiningCalls, type MakeCalls } from "../../run/answers/calls.ts";
import { pause as pauseOfPlatform, SliceCount } from "../../text/bytes/slices.ts";
import type { Member } from "../../run/answers/member.ts";
import { winnerOf } from "../../run/answers/vote.ts";
import { ANSWER_JSON_CHARS_MAX } from "../../limits.ts";
import type { GroupView, SlotView } from "../../objects/methods/groups.ts";
import { votedText } from "../../run/answers/voted-text.ts";
import { partsOf } from "../../answer.ts";
import { usageOf } from "./usage.ts";
import { endIndexOf, slotPages } from "./slot-pages.ts";

type Source = {
  group: Pick<GroupView, "count" | "graph">;
  slotsFrom: (index: number) => Promise<SlotView[]>;
  /** A slot as a member; null = it is none. Absent = every slot that completed or failed. */
  memberOf?: MemberOf;
  /** Makes the calls of rules that have some; absent = the rules of the group have none. */
  makeCalls?: MakeCalls;
  /** Lets other requests go on between slices of the answers. Absent = as the platform does. */
  pause?: () => Promise<void>;
};

export type MemberOf = (slot: SlotView) => Promise<Member | null>;

/** The result on the wire. Rules that make calls show their groups, what they cost, and why one failed. */
export type Aggregation = AggregateResult & {
  winner?: unknown;
  groups?: readonly string[];
  usage?: ReturnType<typeof usageOf>;
  error?: CombiningCalls["error"];
};

/** Combines the answers of a group that has ended. Slots that were cancelled or skipped are no members. */
export async function aggregationOf(
  spec: AggregateSpec,
  { group, slotsFrom, memberOf = slotMember, makeCalls = noCalls, pause = pauseOfPlatform }: Source,
): Promise<Aggregation> {
  const aggregator = aggregatorOf(spec, group.count);
  const calls = new CombiningCalls(makeCalls);
  const slice = new SliceCount();
  for await (const slots of slotPages({ count: endIndexOf(group), slotsFrom })) {
    for (const slot of slots) {
      const member = await memberOf(slot);
      if (member === null) continue;
      aggregator.add(member);
      // Thousands of JSON answers are merged, and a page of slots has megabytes of them.
      if (slice.add(member.text.length)) await pause();
    }
  }
  const combined = await aggregator.result(calls);
  const { groups, spent, error } = calls;
  const result = modelsOfCalls(spec).length === 0 ? combined : { ...combined, groups, usage: usageOf(spent), error };
  if (result.strategy !== "vote" || spec.strategy !== "vote") return result;
  const { winner_index: at } = result;
  const [first] = at === null ? [] : await slotsFrom(at);
  const winner = first === undefined ? null : await memberOf(first);
  // A longer answer is in `results`, at `winner_index`.
  const text = winner?.text.slice(0, ANSWER_JSON_CHARS_MAX) ?? "";
  return { ...result, winner: at === null ? null : winnerOf(text, spec.comparison) };
}

const noCalls: MakeCalls = () => Promise.reject(new Error("the answers of this group are combined without calls"));

function slotMember({ index, id, state, text, parts }: SlotView): Promise<Member | null> {
  const completed = state === "completed";
  const isMember = completed || state === "failed";
  return Promise.resolve(
    isMember
      ? { index, id, completed, text: completed ? votedText({ text: text ?? "", ...partsOf({ parts }) }) : "" }
      : null,
  );
}
