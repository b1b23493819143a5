/** A client with one batch: it posts it under a key and gets its answer, however often the gateway dies in between. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ask, type Answer, type Question } from "./ask.ts";
import type { Phase } from "./hit.ts";
import type { RunPlan } from "./plan.ts";
import { MAX_TOKENS, promptOf } from "./provider.ts";
import { sleep, until } from "./wait.ts";
import type { KillWorld } from "./world.ts";

const started = z.looseObject({ id: z.string(), status: z.string() });
const ended = z.looseObject({
  id: z.string(),
  status: z.string(),
  results: z.array(z.unknown()),
  errors: z.array(z.looseObject({ code: z.string() }).nullable()),
  items: z.array(z.looseObject({ index: z.int() })),
});
export type EndedGroup = z.infer<typeof ended>;

/** Between two tries to reach a gateway that is down, ms. */
const PAUSE_MS = 100;
/** How long a look at the group waits at the gateway, ms. */
const LOOK_MS = 5_000;
/** Longest that a silent client waits for another of its slots to be answered by a gateway that is up, ms. */
const SILENT_MS_MAX = 75_000;
/** Longest that questions about a batch that has ended may take, ms. */
const AFTERWARDS_MS_MAX = 60_000;
/** Unexpected answers after which a client gives up. */
const FAULTS_MAX = 20;

type Target = Pick<KillWorld, "url" | "provider" | "upForMs">;

export class Client {
  phase: Phase = "before";
  /** Every id under which the group was seen. */
  readonly ids = new Set<string>();
  /** Answers that should not be. */
  readonly faults: string[] = [];
  readonly plan: RunPlan;
  readonly token: string;
  /** When the client disconnected in the middle of its batch, `performance.now()`; null if it has not. */
  leftAtMs: number | null = null;
  readonly #world: Target;
  readonly #body: string;
  readonly #key = randomUUID();
  /** Nobody wants an answer any more. */
  #over = new AbortController().signal;

  constructor(plan: RunPlan, token: string, world: Target) {
    this.plan = plan;
    this.token = token;
    this.#world = world;
    const prompts = Array.from({ length: plan.slots }, (_, index) => promptOf(plan, index));
    this.#body = JSON.stringify({ prompts, max_tokens: MAX_TOKENS, on_lost: plan.onLost });
  }

  /** Posts the batch and resolves when it has ended; rejects soon after `over` is aborted. */
  async follow(over: AbortSignal): Promise<void> {
    this.#over = over;
    await sleep(this.plan.postsAfterMs);
    const { client } = this.plan;
    if (client === "leaves") {
      await this.#postAndLeave();
      await this.#allAnswered();
    }
    if (client === "attached" || client === "leaves") await this.post();
    else {
      const { id } = started.parse(JSON.parse((await this.#untilAnswered("/batch", 202, true)).text));
      this.ids.add(id);
      if (this.plan.client === "silent") await this.#allAnswered();
      await this.#looks(id);
    }
    this.phase = "ended";
  }

  /** Posts the batch under its key and waits for the whole answer: the first time, or any time after. */
  async post(): Promise<{ group: EndedGroup; replayed: boolean }> {
    // A batch that has ended is answered at once. Others of its volley may end minutes later, and it is asked for after them.
    if (this.phase === "ended") this.#over = AbortSignal.timeout(AFTERWARDS_MS_MAX);
    const answer = await this.#untilAnswered("/batch", 200, false);
    const group = ended.parse(JSON.parse(answer.text));
    this.ids.add(group.id);
    return { group, replayed: answer.headers.get("idempotent-replayed") === "true" };
  }

  /** Posts the batch, and disconnects when so many of its slots are answered; posts again what the gateway has not accepted. */
  async #postAndLeave(): Promise<void> {
    const { provider, url } = this.#world;
    const { name, slots, leavesAt = 0 } = this.plan;
    const isOpen = (): boolean => this.phase === "open";
    while (!isOpen()) {
      this.phase = "opening";
      const leaving = new AbortController();
      const signal = AbortSignal.any([leaving.signal, this.#over]);
      let isAnswered = false;
      const answer = ask(`${url}/batch`, this.token, { ...this.#question(false), signal });
      const ended = answer.then(() => (isAnswered = true));
      await until(() => isAnswered || (isOpen() && provider.answeredOf(name) >= leavesAt * slots));
      if (!isAnswered) this.leftAtMs = performance.now();
      leaving.abort();
      await ended;
      if (!isOpen()) await this.#pause();
    }
  }

  async #looks(id: string): Promise<void> {
    for (;;) {
      const { text } = await this.#untilAnswered(`/groups/${id}?wait_ms=${LOOK_MS}`, 200, false);
      const seen = started.parse(JSON.parse(text));
      this.ids.add(seen.id);
      if (seen.status !== "running") return;
    }
  }

  /** Waits for the upstream to have answered every slot, as long as there is progress. */
  async #allAnswered(): Promise<void> {
    const { provider, upForMs } = this.#world;
    const { name, slots } = this.plan;
    let seen = 0;
    let atMs = performance.now();
    while (seen < slots) {
      const answered = provider.answeredOf(name);
      if (answered > seen) atMs = performance.now();
      seen = answered;
      const quietMs = Math.min(upForMs(), performance.now() - atMs);
      if (quietMs > SILENT_MS_MAX) {
        this.faults.push(
          `without requests, nothing happened for ${SILENT_MS_MAX} ms with ${seen} of ${slots} slots answered`,
        );
        return;
      }
      await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    this.#over.throwIfAborted();
    await sleep(PAUSE_MS);
  }

  /** The POST of the batch. */
  #question(isAsync: boolean): Question {
    const headers: Record<string, string> = { "idempotency-key": this.#key };
    if (isAsync) headers["prefer"] = "respond-async";
    const onReply = (): void => void (this.phase === "opening" && (this.phase = "open"));
    return { body: this.#body, headers, onReply };
  }

  async #untilAnswered(path: string, status: number, isAsync: boolean): Promise<Answer> {
    const signal = this.#over;
    const question = path === "/batch" ? { ...this.#question(isAsync), signal } : { signal };
    for (;;) {
      if (this.phase === "before") this.phase = "opening";
      const answer = await ask(this.#world.url + path, this.token, question);
      if (answer?.status === status) return answer;
      if (answer !== null) this.faults.push(`${path} was answered ${answer.status}: ${answer.text.slice(0, 300)}`);
      if (this.faults.length > FAULTS_MAX) throw new Error(this.faults.join("\n"));
      await this.#pause();
    }
  }
}
