/** A plan as it arrives in the body of a request: parts of it, each with all lines that are complete by then. */
import type { Parsed } from "../../../contract/errors.ts";
import { parsePlanTask, type DagTask } from "../../../contract/graph/dag.ts";
import { Refusal, toWire, type Reason } from "../../../errors.ts";
import type { PlanPart } from "../../../run/graph/plan/append.ts";
import type { PlanEvent, PlanLines } from "../../../run/graph/plan/lines.ts";
import type { PlanFault } from "../../../run/graph/types.ts";

export type PlanSourceTask = { line: number; task: DagTask; raw: unknown };
export type ArrivedPart = PlanPart<PlanSourceTask>;

/** A body is read so far ahead only as its parts are requested: a client that is faster than the run waits. */
export class PlanSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #lines: PlanLines<unknown>;
  readonly #bytesMax: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  readonly #complete: (task: DagTask) => Promise<DagTask>;
  #bytes = 0;
  #line = 0;
  #hasEnded = false;
  /** What was requested of the body and has not come. */
  #reading: Promise<ArrivedPart> | null = null;

  /** `complete` gives a task what it refers to outside the plan, or throws a Refusal. */
  constructor(
    body: ReadableStream<Uint8Array>,
    {
      lines,
      bytesMax,
      complete,
    }: { lines: PlanLines<unknown>; bytesMax: number; complete: (task: DagTask) => Promise<DagTask> },
  ) {
    this.#reader = body.getReader();
    this.#lines = lines;
    this.#bytesMax = bytesMax;
    this.#complete = complete;
  }

  /** True once nothing more comes. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The next part, which may have no line; null if none has come when `until` resolves. Never rejects. */
  async next(until: Promise<unknown> | null = null): Promise<ArrivedPart | null> {
    this.#reading ??= this.#read();
    const part = await (until === null ? this.#reading : Promise.race([this.#reading, until.then(() => null)]));
    if (part !== null) this.#reading = null;
    return part;
  }

  /** Reads nothing more: the rest of the body is not wanted. */
  stop(): void {
    this.#hasEnded = true;
    this.#reader.cancel().catch(() => undefined);
  }

  async #read(): Promise<ArrivedPart> {
    try {
      const { done, value } = await this.#reader.read();
      if (done) return await this.#part([...this.#lines.feed(this.#decoder.decode()), ...this.#lines.end()], "ended");
      this.#bytes += value.length;
      if (this.#bytes > this.#bytesMax) return await this.#broken(`the plan has more than ${this.#bytesMax} bytes`);
      return await this.#part(this.#lines.feed(this.#decoder.decode(value, { stream: true })), "open");
    } catch (error) {
      // Bytes that are no text, or a client that has left.
      return await this.#broken(
        error instanceof TypeError ? "the plan is not UTF-8, or broke off" : "the plan broke off",
      );
    }
  }

  async #broken(message: string): Promise<ArrivedPart> {
    const part = await this.#part([], "cut");
    return { ...part, faults: [{ line: this.#line + 1, message }], line: this.#line + 1 };
  }

  async #part(events: readonly PlanEvent<unknown>[], state: ArrivedPart["state"]): Promise<ArrivedPart> {
    const tasks: PlanSourceTask[] = [];
    const faults: PlanFault[] = [];
    let end: ArrivedPart["state"] = state;
    for (const event of events) {
      this.#line = event.line;
      if (event.kind === "bad") faults.push({ line: event.line, message: event.message });
      else if (event.kind === "end") end = "ended";
      else {
        const task = await this.#taskOf(event.task);
        if (task.ok) tasks.push({ line: event.line, task: task.value, raw: event.task });
        else faults.push({ line: event.line, message: toWire(task.reason).error.message });
      }
    }
    if (end !== "open") this.stop();
    return { tasks, faults, line: this.#line, state: end };
  }

  async #taskOf(value: unknown): Promise<Parsed<DagTask>> {
    const task = parsePlanTask(value);
    if (!task.ok) return task;
    try {
      return { ok: true, value: await this.#complete(task.value) };
    } catch (error) {
      if (error instanceof Refusal) return { ok: false, reason: error.reason };
      const reason: Reason = { reason: "internal", message: "what the task refers to could not be read" };
      return { ok: false, reason };
    }
  }
}
