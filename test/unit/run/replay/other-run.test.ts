/** Answers of another run that have come, and what is kept of those that nobody takes any more. */
import { expect, it } from "vitest";
import { OtherRun } from "../../../../durable-objects/run/replay/other-run.ts";
import { ANSWERS_READY_CHARS_MAX } from "../../../../src/limits.ts";
import type { AnswersWanted, NamedAnswer } from "../../../../src/run-api/replay.ts";

/** Another run with one answer of so many characters to each key. */
function otherRun(chars: number) {
  const requested: string[] = [];
  let arrived = Promise.withResolvers<void>();
  const other = new OtherRun({
    request: (wanted: AnswersWanted[]) => {
      requested.push(...wanted.map(({ key }) => key));
      const answerOf = ({ key, without }: AnswersWanted): NamedAnswer[] =>
        without.includes(key) ? [] : [{ id: key, text: "x".repeat(chars), model: "m", finishReason: null }];
      return Promise.resolve(wanted.map(answerOf));
    },
    soon: (callback) => queueMicrotask(callback),
    arrived: () => arrived.resolve(),
  });
  const take = (key: string): ReturnType<OtherRun["take"]> => other.take({ epoch: "e", key, waiter: key }, () => []);
  const fetched = async (key: string): Promise<void> => {
    arrived = Promise.withResolvers<void>();
    expect(take(key)).toBe("awaited");
    await arrived.promise;
  };
  return { requested, take, fetched };
}

it("keeps answers for who looks again, and gives each once", async () => {
  const { requested, take, fetched } = otherRun(10);
  await fetched("a");
  expect(take("a")).toMatchObject({ id: "a" });
  await fetched("a");
  expect([take("a"), requested]).toEqual([null, ["a", "a"]]);
});

it("drops the oldest answers that nobody has taken, and requests them again when somebody does", async () => {
  const { requested, take, fetched } = otherRun(ANSWERS_READY_CHARS_MAX / 2);
  for (const key of ["cancelled", "b", "c"]) await fetched(key);
  expect(take("b")).toMatchObject({ id: "b" });
  expect(take("c")).toMatchObject({ id: "c" });
  await fetched("cancelled");
  expect(take("cancelled")).toMatchObject({ id: "cancelled" });
  expect(requested).toEqual(["cancelled", "b", "c", "cancelled"]);
});

it("keeps one answer that is longer than all may be", async () => {
  const { take, fetched } = otherRun(ANSWERS_READY_CHARS_MAX + 1);
  await fetched("long");
  expect(take("long")).toMatchObject({ id: "long" });
});
