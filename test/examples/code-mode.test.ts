/** examples/code-mode: programs that a model has written run without network and without a token, inside ten cents. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PROVIDER_KEY, startCodeMode, type Answer, type CodeMode } from "./code-mode-world.ts";
import { ATTACKS, hostileProgram, WAYS } from "./hostile-programs.ts";

const BUDGET_USD = 0.1;
/** For programs that end. */
const PATIENT_MS = 110_000;
/** For programs of which some never end. */
const HASTY_MS = 3_000;
/** Sums of costs in floating point. */
const EPSILON_USD = 1e-9;

/** Waits until nothing of the run is in flight, and returns what it has spent, USD. */
async function spentBy(world: CodeMode, { run }: Answer): Promise<number> {
  await expect.poll(async () => (await world.runOf(run)).budget.usd.reserved, { timeout: 60_000 }).toBe(0);
  return (await world.runOf(run)).budget.usd.spent;
}

describe("code mode", () => {
  let world: CodeMode;
  beforeAll(async () => void (world = await startCodeMode({ programMs: PATIENT_MS })));
  afterAll(() => world.stop());

  it("runs the program that the model has written", async () => {
    const { result, error, spent_usd: spent } = await world.task("Name fruits.");
    expect(error).toBeUndefined();
    expect(result).toEqual(["Name a fruit that is red", "Name a fruit that is green", "Name a fruit that is blue"]);
    expect(spent).toBeGreaterThan(0);
  });

  it("makes 500 calls of one program inside its budget, and bills what the provider bills", async () => {
    const before = world.bill();
    const ended = await world.program(`export async function main(llm) {
      const prompts = Array.from({ length: 470 }, (_, at) => "question " + at);
      const { results } = await llm.batch({ prompts });
      for (let at = 470; at < 500; at++) results.push((await llm.query({ prompt: "question " + at })).text);
      return results;
    }`);
    expect(ended.error).toBeUndefined();
    expect(ended.result).toEqual(Array.from({ length: 500 }, (_, at) => `question ${at}`));
    const spent = await spentBy(world, ended);
    const { budget, status } = await world.runOf(ended.run);
    expect([status, budget.calls.spent, budget.usd.limit]).toEqual(["closed", 501, BUDGET_USD]);
    const bill = world.bill();
    expect(bill.requests - before.requests).toBe(501);
    expect(spent).toBeCloseTo(bill.usd - before.usd, 9);
  });

  it("says why a program has no result", async () => {
    expect(await world.program("export const main = 5;")).toMatchObject({ error: "main is not a function" });
    expect(await world.program("export async function main() {")).toMatchObject({
      error: expect.stringContaining("Unexpected end of input"),
    });
    expect(await world.program('export const main = () => "x".repeat(2_000_000);')).toMatchObject({
      error: "the result is too long",
    });
  });

  it("reads tasks that are posted, and makes no call for anything else", async () => {
    const before = world.bill();
    expect((await fetch(world.url)).status).toBe(405);
    expect(world.bill()).toEqual(before);
  });
});

describe("a hostile program", () => {
  let world: CodeMode;
  beforeAll(async () => void (world = await startCodeMode({ programMs: HASTY_MS })));
  afterAll(() => world.stop());

  it("is ended if it takes too long", async () => {
    const waiting = "export const main = () => new Promise((resolve) => setTimeout(resolve, 1e9));";
    expect(await world.program(waiting)).toMatchObject({ error: "the program takes too long" });
  });

  it("is tried in a hundred forms", () => {
    expect(ATTACKS.length * WAYS.length).toBe(100);
  });

  it("would find a secret that its Worker has", async () => {
    const secret = "fo-run-which-is-there";
    const reading = hostileProgram("look(platform.env);", "await attack(llm);");
    expect(await world.programWith(reading, secret)).toContain(secret);
  });

  describe.each(ATTACKS)("that $name", ({ code }) => {
    it.each(WAYS)("$name, spends at most its run's ten cents and sees no token", async (way) => {
      const before = world.bill();
      const ended = await world.program(hostileProgram(code, way.code));
      const spent = await spentBy(world, ended);
      const billed = world.bill().usd - before.usd;
      expect(billed).toBeGreaterThan(0);
      expect(billed).toBeLessThanOrEqual(spent + EPSILON_USD);
      expect(spent).toBeLessThanOrEqual(BUDGET_USD);
      // What the program has returned is what it has seen, but for what it has made up.
      const seen = ended.text.replaceAll("fo-run-a.b.c", "");
      for (const secret of ["fo-run-", world.adminKey, PROVIDER_KEY]) expect(seen).not.toContain(secret);
    });
  });

  it("leaves nothing of a secret in the console", () => {
    expect(world.log()).not.toContain(world.adminKey);
    expect(world.log()).not.toContain(PROVIDER_KEY);
    expect(world.log().replaceAll("fo-run-a.b.c", "")).not.toContain("fo-run-");
  });
});
