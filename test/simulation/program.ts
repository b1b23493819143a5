/** What clients do with a run, and what they may rely on: programs that check every reply. */
import type { Random } from "../../bench/adversary/random.ts";
import { answerOf, promptOf } from "./upstream.ts";
import { BROKEN, LEFT, type Reply } from "./worker.ts";
import { ADMIN_KEY, type World } from "./world.ts";

export type Kind = "batch" | "hedged" | "leaves" | "async" | "queries" | "poor";

export type Program = {
  name: string;
  kind: Kind;
  slots: number;
  width: number;
  /** Null = the run has no limit. */
  limitNanoUsd: number | null;
};

/** What a slot reserves at most, roughly, and the answers' cap. */
const MAX_TOKENS = 40;
const SLOT_NANO_USD = 250_000;
/** What a poor run may spend for each slot: about half of what they cost. */
const POOR_SLOT_NANO_USD = 14_000;

/** Longest that a client repeats a request, virtual ms. */
const PATIENCE_MS = 3_600_000;
const RETRY_MS = 1_500;

export function drawProgram(name: string, slots: number, random: Random): Program {
  const kind = random.weighted<Kind>([
    ["batch", 3],
    ["hedged", 2],
    ["leaves", 2],
    ["async", 2],
    ["queries", 1],
    ["poor", 1],
  ]);
  const count = kind === "queries" ? Math.min(slots, 60) : random.integer(1, 2 * slots - 1);
  const plenty = count * SLOT_NANO_USD * 8;
  const limitNanoUsd = kind === "poor" ? Math.ceil(count * POOR_SLOT_NANO_USD) : random.chance(0.7) ? plenty : null;
  return { name, kind, slots: count, width: random.pick([4, 16, 64, 256]), limitNanoUsd };
}

export type Finished = {
  /** Slots by how they ended. */
  completed: number;
  failed: number;
  /** What the gateway says that the run has spent. */
  spentNanoUsd: number;
};

export class ProgramRun {
  readonly #world: World;
  readonly #program: Program;
  readonly #violated: (what: string) => void;
  #token = "";
  #runId = "";

  constructor(world: World, program: Program, violated: (what: string) => void) {
    this.#world = world;
    this.#program = program;
    this.#violated = (what) => violated(`${program.name} (${program.kind}, ${program.slots} slots): ${what}`);
  }

  /** Opens a run, does the program's work in it, checks it, and closes it. */
  async finish(): Promise<Finished> {
    await this.#open();
    const { kind } = this.#program;
    const ends = kind === "queries" ? await this.#queries() : await this.#group();
    const spentNanoUsd = await this.#close();
    return { ...ends, spentNanoUsd };
  }

  async #open(): Promise<void> {
    const { name, width, limitNanoUsd } = this.#program;
    const budget = limitNanoUsd === null ? {} : { budget: { usd: limitNanoUsd / 1e9 } };
    const body = { name, max_parallel: width, retention_s: 3_600, expires_in_s: 43_200, ...budget };
    const opened = await this.#call({ method: "POST", path: "/runs", body, token: ADMIN_KEY }, [201]);
    this.#token = textAt(opened, "token");
    this.#runId = textAt(opened, "id");
  }

  async #queries(): Promise<Pick<Finished, "completed" | "failed">> {
    const { name, slots } = this.#program;
    let failed = 0;
    const ask = async (slot: number): Promise<void> => {
      const body = { prompt: promptOf(name, String(slot)), max_tokens: MAX_TOKENS };
      const headers = { "idempotency-key": `${name}-${slot}` };
      const reply = await this.#reply({ method: "POST", path: "/query", body, headers }, [200, 402, 429, 502, 504]);
      if (reply.status !== 200) failed += 1;
      else this.#checkText(slot, textAt(JSON.parse(reply.text), "text"));
    };
    const waves = Array.from({ length: slots }, (_, slot) => ask(slot));
    await Promise.all(waves);
    return { completed: slots - failed, failed };
  }

  async #group(): Promise<Pick<Finished, "completed" | "failed">> {
    const { name, kind, slots } = this.#program;
    const prompts = Array.from({ length: slots }, (_, slot) => promptOf(name, String(slot)));
    const hedge = kind === "hedged" ? { hedge: { after: 4_000, max_extra: 0.5 } } : {};
    const body = { prompts, max_tokens: MAX_TOKENS, error_style: "null", ...hedge };
    const headers: Record<string, string> = { "idempotency-key": name };
    if (kind === "async") headers["prefer"] = "respond-async";
    const request = { method: "POST", path: "/batch", body, headers };
    if (kind === "leaves") {
      const leavesAfterMs = this.#world.random.integer(0, 20_000);
      await this.#world.request({ ...request, token: this.#token, leavesAfterMs });
      headers["prefer"] = "respond-async";
    }
    const opened = await this.#call(request, [200, 202]);
    const group = kind === "async" || kind === "leaves" ? await this.#followed(textAt(opened, "id")) : opened;
    const first = this.#checkGroup(group);
    // Once more, from the rows: the same.
    const again = await this.#followed(textAt(opened, "id"));
    if (JSON.stringify(listAt(again, "results")) !== JSON.stringify(listAt(group, "results")))
      this.#violated("the results of the ended group have changed");
    return first;
  }

  /** Waits for the end of a group. */
  async #followed(id: string): Promise<object> {
    const untilMs = this.#world.clock.nowMs + PATIENCE_MS;
    while (this.#world.clock.nowMs < untilMs) {
      await this.#look();
      const group = await this.#call({ method: "GET", path: `/groups/${id}?wait_ms=20000` }, [200]);
      if (textAt(group, "status") !== "running") return group;
    }
    this.#violated(`the group ${id} did not end within ${PATIENCE_MS} ms`);
    return {};
  }

  /** Every slot has its own answer, in order. */
  #checkGroup(group: object): Pick<Finished, "completed" | "failed"> {
    const { slots, kind } = this.#program;
    const results = listAt(group, "results");
    const errors = listAt(group, "errors");
    if (results.length !== slots) this.#violated(`${results.length} results for ${slots} slots`);
    let failed = 0;
    for (const [slot, result] of results.entries()) {
      if (typeof result === "string") this.#checkText(slot, result);
      else {
        failed += 1;
        const code = textAt(errors[slot] ?? {}, "code");
        const isPoor = kind === "poor" && code === "budget_exhausted";
        if (!isPoor && !FAILURES.has(code)) this.#violated(`slot ${slot} failed with ${code}`);
      }
    }
    return { completed: slots - failed, failed };
  }

  #checkText(slot: number, text: string): void {
    const { name } = this.#program;
    if (text !== answerOf(name, String(slot))) this.#violated(`slot ${slot} got the answer "${text}"`);
  }

  /** Looks at the books: what is spent and reserved never exceeds the limit. */
  async #look(): Promise<void> {
    const { usd } = budgetIn(await this.#call({ method: "GET", path: "/budget" }, [200]));
    if (usd.limit !== null && usd.spent + usd.reserved > usd.limit + 1e-12)
      this.#violated(`spent ${usd.spent} and reserved ${usd.reserved} of ${usd.limit}`);
  }

  async #close(): Promise<number> {
    await this.#call({ method: "POST", path: `/runs/${this.#runId}/close` }, [200]);
    const untilMs = this.#world.clock.nowMs + PATIENCE_MS;
    for (;;) {
      const run = await this.#call({ method: "GET", path: `/runs/${this.#runId}`, token: ADMIN_KEY }, [200]);
      const { usd } = budgetIn(Reflect.get(run, "budget"));
      if (usd.reserved === 0) return Math.round(usd.spent * 1e9);
      if (this.#world.clock.nowMs > untilMs) {
        this.#violated(`the closed run still reserves ${usd.reserved}`);
        return Math.round(usd.spent * 1e9);
      }
      await this.#world.clock.wait(5_000);
    }
  }

  async #call(request: Request, statuses: readonly number[]): Promise<object> {
    const { text } = await this.#reply(request, statuses);
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  }

  /** Sends a request until it is replied to with one of the statuses; it may be repeated while the gateway fails. */
  async #reply(request: Request, statuses: readonly number[]): Promise<Reply> {
    const untilMs = this.#world.clock.nowMs + PATIENCE_MS;
    for (;;) {
      const reply = await this.#world.request({ token: this.#token, ...request });
      if (reply !== BROKEN && reply !== LEFT) {
        if (statuses.includes(reply.status)) return reply;
        if (reply.status < 500 || !this.#world.mayFail)
          this.#violated(`${request.method} ${request.path}: ${reply.status} ${reply.text}`);
      }
      if (this.#world.clock.nowMs > untilMs) {
        throw new Error(
          `${this.#program.name}: no reply to ${request.method} ${request.path} within ${PATIENCE_MS} ms`,
        );
      }
      await this.#world.clock.wait(RETRY_MS);
    }
  }
}

type Request = { method: string; path: string; token?: string; body?: object; headers?: Record<string, string> };

/** How slots may fail at a moody provider, when their attempts are used up. */
const FAILURES = new Set(["upstream_error", "upstream_rate_limited", "upstream_timeout", "upstream_truncated"]);

function textAt(value: unknown, name: string): string {
  const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : null;
  return typeof found === "string" ? found : "";
}

function listAt(value: object, name: string): unknown[] {
  const found: unknown = Reflect.get(value, name);
  return Array.isArray(found) ? found : [];
}

function budgetIn(value: unknown): { usd: { limit: number | null; spent: number; reserved: number } } {
  const usd: unknown = typeof value === "object" && value !== null ? Reflect.get(value, "usd") : null;
  const numberAt = (name: string): number | null => {
    const found: unknown = typeof usd === "object" && usd !== null ? Reflect.get(usd, name) : null;
    return typeof found === "number" ? found : null;
  };
  return { usd: { limit: numberAt("limit"), spent: numberAt("spent") ?? 0, reserved: numberAt("reserved") ?? 0 } };
}
