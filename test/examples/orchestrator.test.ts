/** examples/orchestrator against a model that reads: tiers, a second chance for P0, a report with actions by protocol, status 2. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startWorld, type World } from "../contract/world.ts";
import { hasPython } from "../support/python.ts";
import { roleModel } from "../support/role-model/answer.ts";
import { unusedPort } from "../support/unused-port.ts";
import type { UpstreamAnswer, UpstreamCall } from "../support/upstream.ts";
import { exampleAt, startProgram, type Ended } from "./program.ts";

/** Which agent a prompt is for, by a word of its task. */
const WORDS = {
  security: "attacker",
  correctness: "twice",
  tests: "not tested",
  cost: "under load",
  style: "comments",
};
/** Where the program receives the gateway's webhook. */
const WEBHOOK_PORT = await unusedPort();
const WEBHOOK_SECRET = `whsec_${Buffer.from("a secret of the operator").toString("base64")}`;
/** Sends deliveries of all kinds to the program's receiver. */
const SIGNATURES = fileURLToPath(new URL("programs/webhook_signatures.py", import.meta.url));
const BAD = "Retry for ever, without a key.";

let answer: (call: UpstreamCall) => UpstreamAnswer;
let asked: string[];
let securityModels: (string | undefined)[];
let world: World;
let folder: string;
beforeAll(async () => {
  const handler = (call: UpstreamCall): UpstreamAnswer => {
    asked.push(agentOf(call.prompt));
    if (asked.at(-1) === "security") securityModels.push(call.model);
    return answer(call);
  };
  world = await startWorld(handler, { WEBHOOK_URL: `http://127.0.0.1:${WEBHOOK_PORT}/`, WEBHOOK_SECRET });
});
beforeEach(async () => {
  [asked, securityModels, answer] = [[], [], roleModel];
  world.upstream.forget();
  folder = await mkdtemp(join(tmpdir(), "fanout-orchestrator-"));
  return () => rm(folder, { recursive: true, force: true });
});
afterAll(() => world.stop());

const agentOf = (prompt: string): string =>
  Object.entries(WORDS).find(([, word]) => prompt.split("# The change")[0]?.includes(word))?.[0] ?? "synthesis";
/** A model whose calls for some agents fail: `sends` times, or for ever. */
const failing = (agents: string[], status: number, sends = Infinity) => {
  const seen = new Map<string, number>();
  return (call: UpstreamCall): UpstreamAnswer => {
    const agent = agentOf(call.prompt);
    seen.set(agent, (seen.get(agent) ?? 0) + 1);
    return agents.includes(agent) && (seen.get(agent) ?? 0) <= sends ? { status } : roleModel(call);
  };
};

async function orchestrate(args: string[] = [], env: Record<string, string> = {}): Promise<Ended> {
  const run = await world.openRun({ budget: { usd: 1 } });
  const all = { FANOUT_URL: world.gateway.url, FANOUT_TOKEN: run.token, FANOUT_MODEL: "up-1", ...env };
  return await startProgram("python3", [exampleAt("orchestrator"), ...args], all, folder).ended;
}

const stored = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(join(folder, "reviews", name), "utf8"));

describe.runIf(hasPython)("orchestrator", () => {
  it("asks each tier once the one before has ended, accepts what weighs more, and combines the findings", async () => {
    const { status, printed, complaint } = await orchestrate();
    expect([status, complaint]).toEqual([0, ""]);
    expect(asked.slice(0, 2).toSorted()).toEqual(["correctness", "security"]);
    expect(asked.slice(2, 4).toSorted()).toEqual(["cost", "tests"]);
    expect(asked.slice(4)).toEqual(["style", "synthesis"]);
    expect(printed).toContain("| tests | P1 | COMPLETE | reviews/tests.json | no test of the third attempt |\n");
    expect(printed).toContain(
      "\nVote: accept. Together (merge): Together: nothing found; no test of the third attempt.\n",
    );
  });

  it("stores every answer where its agent declared it, and the report beside them", async () => {
    await orchestrate([BAD]);
    expect((await readdir(join(folder, "reviews"))).toSorted()).toEqual([
      "correctness.json",
      "cost.json",
      "report.json",
      "report.md",
      "security.json",
      "style.json",
      "tests.json",
    ]);
    expect(await stored("security.json")).toEqual({ verdict: "reject", findings: ["waits have no bound"] });
    expect(await stored("report.json")).toMatchObject({
      vote: "reject",
      strategies: ["vote", "merge"],
      synthesis: expect.stringContaining("waits have no bound; a call may be made twice"),
      agents: [{ agent: "security", tier: "P0", output_location: "reviews/security.json" }, {}, {}, {}, {}],
    });
  });

  it("has a verdict of the change that it was given, and of nothing else", async () => {
    const { status, printed } = await orchestrate([BAD]);
    expect([status, printed]).toEqual([0, expect.stringContaining("\nVote: reject. ")]);
    expect(printed).not.toContain("I was shown no change");
  });

  it("retries an agent of P0 that fails once", async () => {
    answer = failing(["security"], 503, 1);
    const { status, printed } = await orchestrate();
    expect([status, asked.filter((agent) => agent === "security")]).toEqual([0, ["security", "security"]]);
    expect(printed).not.toContain("Escalate");
  });

  it("asks a failed agent of P0 once more, of the fallback model if there is one", async () => {
    answer = (call) =>
      agentOf(call.prompt) === "security" && call.model === "up-1" ? { status: 400 } : roleModel(call);
    const { status, printed } = await orchestrate([], { FANOUT_FALLBACK_MODEL: "up-2" });
    expect([status, asked.filter((agent) => agent === "security").length]).toEqual([0, 2]);
    expect(printed).toContain("| security | P0 | COMPLETE | reviews/security.json |");
  });

  it("escalates an agent of P0 that fails for good, whatever the others say, and ends with 2", async () => {
    answer = failing(["security"], 400);
    const { status, printed } = await orchestrate();
    expect(status).toBe(2);
    expect(printed).toMatch(/\n\| security \| P0 \| upstream_error \| no output after 1 attempt\(s\) \| Escalate \|\n/);
    expect(printed.endsWith("\nA person must decide: escalated by security\n")).toBe(true);
    expect(await stored("report.json")).toMatchObject({
      failed: [{ agent: "security", tier: "P0", action: "Escalate" }],
    });
  });

  it("is notified of a P0 agent that fails at the fallback model, too, and keeps the event in the report", async () => {
    answer = failing(["security"], 400);
    const { status, printed, complaint } = await orchestrate(["--webhook", String(WEBHOOK_PORT)], {
      FANOUT_FALLBACK_MODEL: "up-2",
      WEBHOOK_SECRET,
    });
    expect([status, complaint]).toEqual([2, ""]);
    expect(securityModels).toEqual(["up-1", "up-2"]);
    const [, group] = /\nNotified by group\.escalated of (pg-\S+): P0, upstream_error\.\n/.exec(printed) ?? [];
    expect(await stored("report.json")).toMatchObject({
      failed: [{ agent: "security", action: "Escalate" }],
      notified: { id: `evt_${group}_escalated`, type: "group.escalated", data: { id: group, index: 0, tier: "P0" } },
    });
  });

  it("waits for no notification if the second chance succeeds", async () => {
    answer = (call) =>
      agentOf(call.prompt) === "security" && call.model === "up-1" ? { status: 400 } : roleModel(call);
    const env = { FANOUT_FALLBACK_MODEL: "up-2", WEBHOOK_SECRET };
    const { status, printed } = await orchestrate(["--webhook", String(WEBHOOK_PORT)], env);
    expect([status, printed]).toEqual([0, expect.not.stringContaining("webhook")]);
    expect(await stored("report.json")).toMatchObject({ failed: [], notified: null });
  });

  it("keeps only the events that the gateway has signed", async () => {
    const { status, printed, complaint } = await startProgram("python3", [SIGNATURES, exampleAt("orchestrator")], {})
      .ended;
    expect([status, printed, complaint]).toEqual([0, "204 204 401 401 401 401\nevt_right\n", ""]);
  });

  it("asks nobody if the gateway has no webhook, or the program no secret", async () => {
    const plain = await startWorld(roleModel);
    onTestFinished(() => plain.stop());
    const run = await plain.openRun({ budget: { usd: 1 } });
    const env = { FANOUT_URL: plain.gateway.url, FANOUT_TOKEN: run.token, FANOUT_MODEL: "up-1" };
    const refused = await orchestrate(["--webhook", String(WEBHOOK_PORT)], { ...env, WEBHOOK_SECRET });
    expect([refused.status, refused.complaint]).toEqual([1, expect.stringContaining("WEBHOOK_URL is not set")]);
    const secretless = await orchestrate(["--webhook", String(WEBHOOK_PORT)], env);
    expect([secretless.status, secretless.complaint]).toEqual([
      2,
      expect.stringContaining("WEBHOOK_SECRET is not set"),
    ]);
    expect(plain.upstream.counters.requests).toBe(0);
  });

  it("warns of a failed agent of P1, notes one of P2, and counts no vote of theirs", async () => {
    answer = failing(["tests", "style"], 400);
    const { status, printed } = await orchestrate();
    expect(status).toBe(0);
    expect(printed).toMatch(
      /\| tests \| P1 \| upstream_error \| .* \| Warn \|\n\| style \| P2 \| upstream_error \| .* \| Note \|\n/,
    );
    expect(printed).toContain("\nVote: accept. ");
  });

  it("asks for a person if neither verdict weighs more than half", async () => {
    answer = (call) => {
      const rejects = ["correctness", "tests"].includes(agentOf(call.prompt));
      return rejects ? { text: '{"verdict":"reject","findings":[]}' } : roleModel(call);
    };
    const { status, printed } = await orchestrate();
    expect(status).toBe(2);
    expect(printed).toContain("\nVote: undecided. ");
  });
});
