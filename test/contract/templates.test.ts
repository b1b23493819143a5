/** The templates of examples/workflows with a model that reads: what each call is sent, and what becomes of its answer. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Folder } from "../unit/cli/command.ts";
import type { UpstreamAnswer } from "../support/upstream.ts";
import { startWorld, type World } from "./world.ts";

let world: World;
let asked: string[];
let answer: (prompt: string) => UpstreamAnswer;
beforeAll(async () => {
  world = await startWorld(({ prompt }) => {
    asked.push(prompt);
    return answer(prompt);
  });
});
afterAll(() => world.stop());

let folder: Folder;
beforeEach(async () => {
  asked = [];
  folder = await Folder.create();
});
afterEach(() => folder.remove());

/** The result of a template, which is its last line. */
async function resultOf(name: string, args: object): Promise<unknown> {
  const file = join(import.meta.dirname, "../../examples/workflows", `${name}.mjs`);
  const env = { FANOUT_URL: world.gateway.url, ADMIN_KEY: world.gateway.adminKey };
  const given = ["run", file, "--budget", "1", "--model", "up-1", "--args", JSON.stringify(args)];
  const { stdout } = await folder.fanout(given, { env });
  return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
}

const json = (value: unknown): UpstreamAnswer => ({ text: JSON.stringify(value) });

describe("best_of_n", () => {
  const verifying = (scores: Record<string, number | null>) => {
    let made = 0;
    return (prompt: string): UpstreamAnswer => {
      if (!prompt.startsWith("Verify")) return { text: `answer ${++made}` };
      const [, given = ""] = /Answer: answer (\d)/.exec(prompt) ?? [];
      const score = scores[given] ?? null;
      return score === null ? { status: 400 } : json({ holds: score > 4, score });
    };
  };

  it(
    "returns of the answers that hold the one with the best score, and no answer that nobody has verified",
    { tags: ["slow"] },
    async () => {
      answer = verifying({ 1: 5, 2: 9, 3: 4, 4: null });
      expect(await resultOf("best_of_n", { question: "Which?" })).toMatchObject({
        answers: 4,
        held: 2,
        unverified: 1,
        best: { answer: "answer 2", score: 9 },
      });
    },
  );

  it("returns none where none holds", { tags: ["slow"] }, async () => {
    answer = verifying({ 1: 1, 2: 2 });
    expect(await resultOf("best_of_n", { question: "Which?", n: 2 })).toMatchObject({ held: 0, best: null });
  });
});

describe("debate", () => {
  /** A judge who believes the side that stands first, or the one that he is told. */
  const judged = (winner: string | null) => (prompt: string) => {
    if (prompt.startsWith("You judge"))
      return json({ winner: winner ?? /\n(for|against): /.exec(prompt)?.[1], because: "" });
    const [, side = ""] = /You argue (\w+)/.exec(prompt) ?? [];
    return { text: `${side} after ${prompt.includes("The other side says") ? "reading" : "nothing"}` };
  };

  it("shows each side what the other has said, and has both judged in either order", { tags: ["slow"] }, async () => {
    answer = judged("for");
    expect(await resultOf("debate", { question: "Keys?" })).toMatchObject({ decided: true, winner: "for" });
    expect(asked.slice(0, 2).every((prompt) => prompt.endsWith("You begin."))).toBe(true);
    expect(asked.slice(2, 4).toSorted()).toEqual([
      "You argue against: Keys?\nThe other side says: for after nothing\nAnswer that.",
      "You argue for: Keys?\nThe other side says: against after nothing\nAnswer that.",
    ]);
    const sides = ["for: for after reading", "against: against after reading"];
    const judge = (order: string[]) => expect.stringContaining(`\n${order.join("\n")}\n`);
    expect(asked.slice(4)).toEqual(expect.arrayContaining([judge(sides), judge(sides.toReversed())]));
  });

  it("decides nothing by a judge who believes whoever stands first", { tags: ["slow"] }, async () => {
    answer = judged(null);
    expect(await resultOf("debate", { question: "Keys?" })).toMatchObject({ decided: false, winner: null });
  });
});

describe("plan_execute_judge", () => {
  const working = (enoughAfter: number) => (prompt: string) => {
    if (prompt.startsWith("Plan") && prompt.includes("Missing: tin"))
      return json({ steps: [{ task: "tin", needs: [] }] });
    if (prompt.startsWith("Plan"))
      return json({
        steps: [
          { task: "iron", needs: [] },
          { task: "compare", needs: [1, 2, 7] },
        ],
      });
    if (!prompt.startsWith("Judge")) return { text: `result of ${prompt.split("\n")[0]}` };
    const enough = prompt.split('"task"').length - 1 >= enoughAfter;
    return json({ enough, answer: "iron melts later", missing: enough ? "" : "tin" });
  };

  it(
    "gives each step the results that it needs, and plans once more for what is missing",
    { tags: ["slow"] },
    async () => {
      answer = working(3);
      expect(await resultOf("plan_execute_judge", { goal: "Compare." })).toEqual({
        goal: "Compare.",
        plans: 2,
        results: [
          { task: "iron", result: "result of iron" },
          { task: "compare", result: "result of compare" },
          { task: "tin", result: "result of tin" },
        ],
        enough: true,
        answer: "iron melts later",
        missing: "",
      });
      expect(asked).toContain("compare\niron: result of iron");
    },
  );

  it("ends after the second plan with what there is", { tags: ["slow"] }, async () => {
    answer = working(9);
    expect(await resultOf("plan_execute_judge", { goal: "Compare." })).toMatchObject({ plans: 2, enough: false });
  });
});
