/** Members of a group for tests of what their answers are combined to. */
import { ruleOf } from "../../../../src/run/answers/aggregate.ts";
import type { Member } from "../../../../src/run/answers/member.ts";

/** Members in input order by their answers; null = failed. */
export function membersOf(answers: readonly (string | null)[], ids: readonly (string | null)[] = []): Member[] {
  return answers.map((text, index) => ({
    index,
    id: ids[index] ?? null,
    completed: text !== null,
    text: text ?? "",
  }));
}

/** What the members are combined to. */
export function combined(spec: Parameters<typeof ruleOf>[0], members: readonly Member[]) {
  const aggregator = ruleOf(spec);
  for (const member of members) aggregator.add(member);
  return aggregator.result();
}
