/** What gates have counted is what runs have used, whatever sleeps, dies, is lost or comes twice. */
import { expect, it } from "vitest";
import { GateUnderTest, MeteredRun, NO_SUMS, type Fate, type Sums } from "../../support/metered-world.ts";
import { seeded } from "../../support/engine.ts";

const HISTORIES = 100;
const STEPS = 120;
const GATES = ["up", "other"] as const;
const RUNS = 4;

type Reading = { gate: GateUnderTest; name: string; run: MeteredRun; mark: string };

class History {
  readonly gates = new Map<string, GateUnderTest>(GATES.map((name) => [name, new GateUnderTest()]));
  readonly runs: MeteredRun[];
  readonly #random: () => number;
  /** Looks at `GET /metrics` that are under way: each is interrupted by other steps. */
  #readings: Reading[] = [];
  /** Alarms whose jobs go on. */
  readonly #ringing = new Set<Promise<void>>();
  nowMs = 1_000_000;
  isCalm = false;

  constructor(seed: number) {
    this.#random = seeded(seed);
    this.runs = Array.from({ length: RUNS }, (_, index) => new MeteredRun(`run_${index}`, this.gates, seed + index));
    for (const run of this.runs) run.fate = () => this.#fate();
  }

  #fate(): Fate {
    if (this.isCalm) return "arrives";
    return this.#one<Fate>(["arrives", "arrives", "arrives", "lost", "unanswered", "twice", "slow"]);
  }

  #one<T>(things: readonly T[]): T {
    const picked = things[Math.floor(this.#random() * things.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }

  #pass(ms: number): void {
    this.nowMs += ms;
    for (const run of this.runs) run.nowMs = this.nowMs;
  }

  get used(): Sums {
    return total(this.runs.map(({ sums }) => sums));
  }

  get shown(): Sums {
    return total([...this.gates.values()].map(({ sums }) => sums));
  }

  async step(): Promise<void> {
    const run = this.#one(this.runs);
    const gate = this.#one([...this.gates.values()]);
    this.#pass(this.#one([1, 50, 5_000, 70_000]));
    switch (Math.floor(this.#random() * 12)) {
      case 0:
      case 1:
      case 2:
        return run.hasEnded ? undefined : run.start(this.#one(GATES), this.nowMs);
      case 3:
      case 4:
      case 5:
        return run.end(this.nowMs, this.#random() < 0.5);
      case 6:
        return run.stop(this.nowMs, this.#random() < 0.5);
      case 7:
        return gate.stop();
      case 8:
        return this.#ring(run);
      case 9:
        return run.late.shift()?.();
      case 10:
        run.hasEnded ||= this.#random() < 0.1;
        return run.turn(this.nowMs);
      default:
        return this.#random() < 0.4 ? this.#list() : await this.#visit();
    }
  }

  #ring(run: MeteredRun): void {
    const jobs = run.alarm().finally(() => this.#ringing.delete(jobs));
    this.#ringing.add(jobs);
  }

  /** A reader asks the gates which runs to visit. */
  #list(): void {
    for (const [name, gate] of this.gates) {
      for (const { run, mark } of gate.meters.unread(RUNS).runs) {
        const found = this.runs.find(({ id }) => id === run);
        if (found !== undefined) this.#readings.push({ gate, name, run: found, mark });
      }
    }
  }

  /** It visits one of them; what it brings may be lost, or come much later than what the run does next. */
  async #visit(): Promise<void> {
    const reading = this.#readings.shift();
    if (reading === undefined) return;
    const { gate, name, run, mark } = reading;
    const meters = (await run.read([name])).map((meter) => structuredClone({ ...meter, mark }));
    const fate = this.#fate();
    if (fate === "twice" || fate === "unanswered" || fate === "slow")
      run.late.push(() => gate.meters.take(meters, this.nowMs));
    if (fate === "arrives" || fate === "twice") gate.meters.take(meters, this.nowMs);
  }

  /** Nothing is lost from now on: what is on its way arrives, and alarms ring. */
  async settle(): Promise<void> {
    this.isCalm = true;
    this.#pass(200_000);
    for (const run of this.runs) for (const late of run.late.splice(0)) late();
    await Promise.all(this.#ringing);
    while (this.#readings.length > 0) await this.#visit();
    for (const run of this.runs) await run.alarm();
  }

  /** One read of `GET /metrics`. */
  async scrape(): Promise<Sums> {
    this.#list();
    while (this.#readings.length > 0) await this.#visit();
    return this.shown;
  }
}

function total(parts: readonly Sums[]): Sums {
  return parts.reduce(
    (sum, part) => ({
      attempts: sum.attempts + part.attempts,
      promptTokens: sum.promptTokens + part.promptTokens,
      completionTokens: sum.completionTokens + part.completionTokens,
      costNanoUsd: sum.costNanoUsd + part.costNanoUsd,
    }),
    NO_SUMS,
  );
}

it(
  `is exact in ${HISTORIES} histories of ${STEPS} steps in which objects stop and messages are lost or repeated`,
  { tags: ["slow"] },
  async () => {
    let attempts = 0;
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const history = new History(seed);
      let shown = history.shown;
      for (let step = 0; step < STEPS; step++) {
        await history.step();
        const now = history.shown;
        for (const name of ["attempts", "promptTokens", "completionTokens", "costNanoUsd"] as const)
          expect(now[name], `seed ${seed}, step ${step}: ${name} never becomes less`).toBeGreaterThanOrEqual(
            shown[name],
          );
        shown = now;
      }
      await history.settle();
      expect(await history.scrape(), `seed ${seed}`).toEqual(history.used);
      // And after a pause in which every object has slept, calls and another read.
      for (const gate of history.gates.values()) gate.stop();
      for (const run of history.runs) {
        run.stop(history.nowMs, true);
        if (!run.hasEnded) run.start("up", history.nowMs);
        run.end(history.nowMs, false);
      }
      expect(await history.scrape(), `seed ${seed}, after a pause`).toEqual(history.used);
      attempts += history.used.attempts;
    }
    expect(attempts).toBeGreaterThan(20 * HISTORIES);
  },
);
