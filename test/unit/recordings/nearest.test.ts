/** The nearest recorded request. */
import { describe, expect, it } from "vitest";
import { missReason, nearest } from "../../../src/recordings/nearest.ts";
import { likeness, sketchOf } from "../../../src/recordings/sketch.ts";
import { callRequest } from "../../../src/recordings/request.ts";

const words = (from: number, count: number): string =>
  Array.from({ length: count }, (_, at) => `word${from + at}`).join(" ");
const like = (a: string, b: string): number => likeness(sketchOf(a), sketchOf(b));

describe("sketches", () => {
  it("are the more alike the more words two texts share", () => {
    const text = words(0, 400);
    expect(like(text, text)).toBe(1);
    expect(like(text, words(20, 400))).toBeGreaterThan(like(text, words(200, 400)));
    expect(like(text, words(200, 400))).toBeGreaterThan(like(text, words(1_000, 400)));
  });

  it("see a difference at the end of a long text", () => {
    const long = words(0, 20_000);
    expect(like(long, `${long} ${words(50_000, 200)}`)).toBeLessThan(1);
  });

  it("of texts without words are alike", () => {
    expect(like("", "…")).toBe(1);
  });
});

describe("the nearest request", () => {
  const request = (prompt: string) => callRequest({ prompt }, "m", null);

  it("is the one that differs least", () => {
    const candidates = ["What is rain?", "What is snow there?", "Who?"].map((prompt, at) => ({
      number: at + 1,
      request: request(prompt),
    }));
    expect(nearest(request("What is snow here?"), candidates)?.number).toBe(2);
    expect(nearest(request("x"), [])).toBeNull();
  });

  it("is in the reason of a miss; without one the reason says why", () => {
    const messageOf = (...args: Parameters<typeof missReason>): string => {
      const reason = missReason(...args);
      return "message" in reason ? reason.message : "";
    };
    expect(messageOf("t", 0, 0, null)).toContain("the tape is empty");
    expect(messageOf("t", 5, 1, null)).toContain("has one answer to this request, and the run has already received it");
    expect(messageOf("t", 5, 2, null)).toContain(
      "has 2 answers to this request, and the run has already received all of them",
    );
    expect(messageOf("t", 5, 0, { number: 4, differences: ["a: x"] })).toContain(
      "the nearest recorded request is number 4, which differs in a: x",
    );
  });
});
