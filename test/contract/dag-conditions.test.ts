/** Graphs whose tasks start by what others have answered: branches, their else, and what merges them. The provider repeats prompts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { logOf } from "./following.ts";
import { errorOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

const graph = z.looseObject({
  id: z.string(),
  status: z.string(),
  tasks: z.record(
    z.string(),
    z.looseObject({
      status: z.string(),
      output: z.string().nullable().optional(),
      error: z.looseObject({ code: z.string() }).nullable(),
      attempts: z.int(),
    }),
  ),
  skipped: z.array(z.string()),
  outputs: z.record(z.string(), z.unknown()),
});
type Graph = z.infer<typeof graph>;

const open = (): Promise<RunAccess> => world.openRun({ budget: { usd: 1 }, default_model: "up-1" });

async function dag(tasks: readonly object[], run?: RunAccess): Promise<Graph> {
  const answer = await (run ?? (await open())).send("/dag", { json: { tasks } });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return graph.parse(answer.json);
}

/** A score, a branch for a high one, its else, and a task that merges what was taken. */
const branching = (score: string) => [
  { id: "judge", prompt: score },
  { id: "praise", prompt: "good", run_if: { task: "judge", json: "$.score > 0.5" } },
  { id: "blame", prompt: "bad", run_if: { else: "praise" } },
  { id: "more", prompt: "and {{praise.output}}" },
  { id: "both", prompt: "It is {{praise.output}}{{blame.output}}", run_if: { at_least: 1 } },
];

const statusesOf = ({ tasks }: Graph): string[] => Object.values(tasks).map(({ status }) => status);

describe("a condition on an output", () => {
  it("starts its task if it holds, skips its else, and is no failure", async () => {
    const done = await dag(branching('{"score": 0.9}'));
    expect([done.status, statusesOf(done)]).toEqual([
      "completed",
      ["completed", "completed", "skipped", "completed", "completed"],
    ]);
    expect(done.outputs).toEqual({ more: "and good", both: "It is good" });
    expect(done.tasks["blame"]).toMatchObject({
      output: null,
      attempts: 0,
      error: { code: "condition_not_met", dependency: "praise", retryable: false },
    });
  });

  it.each(['{"score": 0.1}', '{"score": null}', "{}", "no score"])(
    "skips its task for %s, with what depends on it, and starts its else",
    async (score) => {
      const run = await open();
      const done = await dag(branching(score), run);
      expect([done.status, done.skipped]).toEqual(["completed", ["praise", "more"]]);
      expect(done.outputs).toEqual({ more: null, both: "It is bad" });
      expect(done.tasks["more"]?.error).toMatchObject({ code: "condition_not_met", dependency: "praise" });
      const lines = await run.send(`/runs/${run.id}/log`);
      expect(lines.text).toContain('"completed":3,"failed":0,"cancelled":0,"skipped":2');
    },
  );

  it("is told in the log at once for each call that it skips, while the graph still runs", async () => {
    const run = await open();
    const tasks = [...branching('{"score": 0.1}'), { id: "slow", prompt: "{{fault/hang}}" }];
    const opened = await run.send("/dag", { json: { tasks }, headers: { prefer: "respond-async" } });
    const skipped = async () =>
      (await logOf(run))
        .filter(({ event_type }) => event_type === "slot_skipped")
        .map(({ index, code }) => [index, code]);
    await expect.poll(skipped).toEqual([
      [1, "condition_not_met"],
      [3, "condition_not_met"],
    ]);
    const at = opened.headers.get("location") ?? "";
    expect((await run.send(at)).json).toMatchObject({ status: "running" });
    await run.send(at, { method: "DELETE" });
    expect(await skipped()).toHaveLength(2);
  });

  it("starts neither branch if the judged task fails: that is a failure", async () => {
    const done = await dag(branching("{{status/400}}"));
    expect([done.status, done.skipped]).toEqual(["failed", ["praise", "blame", "more", "both"]]);
    expect(done.tasks["blame"]?.error).toMatchObject({ code: "dependency_failed" });
  });

  it("decides between three ways by the text of a label", async () => {
    const label = (is: string) => ({ task: "label", matches: `^${is}$`, flags: "i" });
    const ways = (said: string) => [
      { id: "label", prompt: said },
      { id: "bug", prompt: "fix", run_if: label("bug") },
      { id: "idea", prompt: "plan", run_if: { any: [label("idea"), { task: "label", contains: "wish" }] } },
      { id: "rest", prompt: "answer", run_if: { all: [{ else: "bug" }, { else: "idea" }] } },
    ];
    const taken = async (said: string) => {
      const { tasks } = await dag(ways(said));
      return ["bug", "idea", "rest"].map((id) => tasks[id]?.output);
    };
    expect(await taken("Bug")).toEqual(["fix", null, null]);
    expect(await taken("a wish of mine")).toEqual([null, "plan", null]);
    expect(await taken("hello")).toEqual([null, null, "answer"]);
  });

  it("selects elements of a pipeline: the others are not missing", async () => {
    const done = await dag([
      { id: "list", prompt: '["keep a", "drop b", "keep c"]' },
      { id: "each", foreach: "{{list.output.json}}", prompt: "{{item}}" },
      { id: "kept", foreach: "{{each.outputs}}", prompt: "<{{item}}>", run_if: { task: "each", contains: "keep" } },
      { id: "all", prompt: "{{kept.outputs}}" },
    ]);
    expect([done.status, done.tasks["kept"]?.["status"]]).toEqual(["completed", "completed"]);
    expect(done.tasks["kept"]?.["outputs"]).toEqual(["<keep a>", null, "<keep c>"]);
    expect(done.outputs).toEqual({ all: "<keep a>\n\n<keep c>" });
  });

  it("is passed to the next alternative if the condition of one does not hold", async () => {
    const done = await dag([
      { id: "size", prompt: "large" },
      { id: "first", prompt: "{{status/400}} x", alternatives: ["small", "big"] },
      { id: "small", prompt: "small way", run_if: { task: "size", equals: "small" } },
      { id: "big", prompt: "big way", run_if: { task: "size", equals: "large" } },
    ]);
    expect(done.tasks["first"]).toMatchObject({ status: "failed", replaced_by: "big" });
    expect([done.status, done.tasks["small"]?.error?.code]).toEqual(["completed", "condition_not_met"]);
  });

  it("beside an alternative decides whether that one is tried, also where no other is left", async () => {
    const run = await open();
    const short = { id: "short", when: { task: "size", json: "$.pages < 5" } };
    const tasks = (pages: number) => [
      { id: "size", prompt: `{"pages": ${pages}}` },
      {
        id: "essay",
        prompt: "{{status/400}} x",
        alternatives: [short, { id: "long", when: { task: "size", contains: "9" } }],
      },
      { id: "short", prompt: "short way" },
      { id: "long", prompt: "long way" },
      { id: "end", prompt: "By the {{essay.output}}" },
    ];
    const done = await dag(tasks(9), run);
    expect([done.status, done.outputs, done.tasks["short"]?.error?.code]).toEqual([
      "completed",
      { end: "By the long way" },
      "condition_not_met",
    ]);
    expect(done.tasks["essay"]).toMatchObject({ status: "failed", replaced_by: "long" });
    // An answer of the first one leaves the second unasked; where neither holds, the failure stays.
    expect((await dag(tasks(4), run)).tasks["long"]).toMatchObject({ status: "skipped", not_needed: true });
    const failed = await dag(tasks(7), run);
    expect([failed.status, failed.tasks["end"]?.error?.code]).toEqual(["partial", "dependency_failed"]);
    const outline = await run.send(`/dag/${done.id}/outline`);
    expect(outline.json).toMatchObject({
      tasks: [
        { id: "size" },
        { id: "essay", alternatives: [2, 3] },
        { id: "short", alternative_of: 1, run_if: short.when, dependencies: [0] },
        { id: "long", alternative_of: 1, run_if: { task: "size", contains: "9" } },
        { id: "end" },
      ],
    });
  });

  it("is shown in the outline as its client wrote it", async () => {
    const run = await open();
    const { id } = await dag(branching("{}"), run);
    const outline = z
      .object({
        tasks: z.array(z.object({ id: z.string(), run_if: z.unknown().optional(), dependencies: z.array(z.int()) })),
      })
      .parse((await run.send(`/dag/${id}/outline`)).json);
    expect(outline.tasks.map((task) => [task.run_if, task.dependencies])).toEqual([
      [undefined, []],
      [{ task: "judge", json: "$.score > 0.5" }, [0]],
      [{ else: "praise" }, [1]],
      [undefined, [1]],
      [{ at_least: 1 }, [1, 2]],
    ]);
  });

  it("is refused with a sentence that names its field", async () => {
    const run = await open();
    const refused = async (runIf: unknown) => {
      const tasks = [
        { id: "a", prompt: "x" },
        { id: "b", prompt: "y", run_if: runIf },
      ];
      const answer = await run.send("/dag", { json: { tasks } });
      const { code, param } = errorOf(answer);
      return [answer.status, code, param];
    };
    expect(await refused({ task: "a", json: "high" })).toEqual([400, "invalid_request", "tasks[1].run_if.json"]);
    expect(await refused({ task: "c", equals: "x" })).toEqual([422, "invalid_graph", "tasks[1].run_if"]);
    expect(await refused({ else: "a" })).toEqual([422, "invalid_graph", "tasks[1].run_if"]);
    const alternative = await run.send("/dag/validate", {
      json: {
        tasks: [
          { id: "a", prompt: "x", alternatives: [{ id: "b", when: { task: "nowhere", equals: "x" } }] },
          { id: "b", prompt: "y" },
        ],
      },
    });
    expect([alternative.status, errorOf(alternative).param]).toEqual([422, "tasks[0].alternatives[0].when"]);
  });
});
