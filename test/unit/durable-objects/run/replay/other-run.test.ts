/** Answers of another run that have come, and what is kept of those that nobody takes any more. */
import { expect, it } from "vitest";
import { OtherRun } from "../../../../../durable-objects/run/replay/other-run.ts";
import { ANSWERS_READY_CHARS_MAX } from "../../../../../src/limits.ts";
import type { AnswersWanted, NamedAnswer } from "../../../../../src/objects/methods/replay.ts";

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

it("gives equal calls an answer each, although the other run repeats its answer to a call that it knows", async () => {
  const known = new Map<string, NamedAnswer>();
  const answerOf = (call: string): NamedAnswer => {
    const answer = known.get(call) ?? { id: String(known.size), text: "t", model: "m", finishReason: null };
    known.set(call, answer);
    return answer;
  };
  const other = new OtherRun({
    request: (wanted) => Promise.resolve(wanted.map(({ calls }) => calls.map(answerOf))),
    soon: (callback) => queueMicrotask(callback),
    arrived: () => undefined,
  });
  const had = new Set<string>();
  /** Takes what its epoch has not had, as the run does. Null while it is awaited. */
  const take = (waiter: string): string | null => {
    const call = { epoch: "e", key: "k", waiter };
    for (;;) {
      const answer = other.take(call, () => []);
      if (answer === null || answer === "awaited") return null;
      if (had.has(answer.id)) other.hadAlready(call);
      else {
        had.add(answer.id);
        return answer.id;
      }
    }
  };
  const taken = async (waiter: string): Promise<string> => {
    for (let look = 0; look < 10; look++) {
      const id = take(waiter);
      if (id !== null) return id;
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    throw new Error(`${waiter} waits for ever`);
  };
  expect(take("a")).toBe(null);
  await new Promise((resolve) => setTimeout(resolve, 0));
  // Another call takes what this one's request has brought.
  expect(take("b")).toBe("0");
  expect(await taken("a")).toBe("1");
  expect(await taken("c")).toBe("2");
});
