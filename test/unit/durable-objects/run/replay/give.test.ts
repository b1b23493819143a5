/** What calls of child runs take of a run's recorded answers. */
import { expect, it } from "vitest";
import { giveAnswers } from "../../../../../durable-objects/run/replay/give.ts";
import { ANSWERS_REPLY_CHARS_MAX } from "../../../../../src/limits.ts";
import type { NamedAnswer } from "../../../../../src/objects/methods/replay.ts";

const answer = (id: string, chars = 1): NamedAnswer => ({
  id,
  text: "x".repeat(chars),
  model: "m",
  finishReason: null,
});

type Given = (NamedAnswer[] | null)[];

/** A run with these answers of each key; a key that starts with "late" is awaited until `arrived`. */
function runWith(answers: Record<string, NamedAnswer[]>) {
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  let isHere = false;
  const replies: Given[] = [];
  const replay = {
    recallKey: (
      { callId, key }: { callId: string; key: string },
      again: ((nowMs: number) => void) | null,
    ): NamedAnswer | "awaited" | null => {
      asked.push(callId);
      if (key.startsWith("late") && !isHere) {
        waiting.push(() => again?.(0));
        return "awaited";
      }
      return answers[key]?.shift() ?? null;
    },
  };
  const give = (wanted: { key: string; calls: string[] }[]): void =>
    giveAnswers(replay, { child: "run_c", wanted: wanted.map((each) => ({ epoch: "e", ...each })) }, (given) =>
      replies.push(given),
    );
  const arrived = (): void => {
    isHere = true;
    for (const look of waiting) look();
  };
  return { asked, replies, give, arrived };
}

it("gives each call another answer, and fewer answers than calls where there are fewer", () => {
  const { asked, replies, give } = runWith({ a: [answer("s1"), answer("s2")], b: [] });
  give([
    { key: "a", calls: ["1", "2", "3"] },
    { key: "b", calls: ["4"] },
  ]);
  expect(replies).toEqual([[[answer("s1"), answer("s2")], []]]);
  // The same call of another child is another call.
  expect(asked).toEqual(["run_c/1", "run_c/2", "run_c/3", "run_c/4"]);
});

it("replies once, when a run above has said what it has", () => {
  const { replies, give, arrived } = runWith({ a: [answer("s1")], late: [answer("rs1")] });
  give([
    { key: "late", calls: ["1", "2"] },
    { key: "a", calls: ["3"] },
  ]);
  expect(replies).toEqual([]);
  arrived();
  expect(replies).toEqual([[[answer("rs1")], [answer("s1")]]]);
});

it("replies in parts that are not too long, and looks nothing up that it cannot give", () => {
  const { asked, replies, give } = runWith({ a: [answer("s1", ANSWERS_REPLY_CHARS_MAX + 1)], b: [answer("s2")] });
  give([
    { key: "a", calls: ["1"] },
    { key: "b", calls: ["2"] },
  ]);
  expect(replies[0]?.[1]).toBeNull();
  expect(asked).toEqual(["run_c/1"]);
});

it("replies to a request for nothing, and for answers of a run that records none", () => {
  const replies: Given[] = [];
  giveAnswers(null, { child: "run_c", wanted: [{ epoch: "e", key: "a", calls: ["1"] }] }, (given) =>
    replies.push(given),
  );
  const { give, replies: others } = runWith({});
  give([]);
  expect([replies, others]).toEqual([[[[]]], [[]]]);
});
