/** A graph: a diamond, and a task for each element of another one's list. */
import { answerOf, listSlot, promptOf, type Bill } from "../upstream.ts";
import { later, type Opening } from "./calls.ts";
import { listAt, objectAt, textAt } from "./client.ts";
import { FAILURES, MAX_TOKENS, type Ends, type Program, type Work } from "./work.ts";

/** Tasks beside those of the list's elements. */
export const FIXED_TASKS = 7;
/** Most elements that a `foreach` works on by default. */
export const ELEMENTS_MAX = 100;
/** The cap of the longest list. */
const LIST_TOKENS = 300;

type Call = { id: string; slot: string; status: string; output: string | null; code: string };

/** Runs the graph, and checks each call of it: its output, and its place in time by the provider's record. */
export async function graph(work: Work): Promise<Ends> {
  const { world, client, program, violated } = work;
  const request = graphOf(program);
  const how = world.random.pick(["waits", "async", "leaves"] as const);
  if (how === "leaves") await client.leave(request, world.random.integer(0, 20_000));
  const opened = await client.call(how === "waits" ? request : later(request), [200, 202]);
  const at = `/dag/${textAt(opened, "id")}`;
  const ended = how === "waits" ? opened : await client.followed(at);
  const again = await client.followed(at);
  const tasks = objectAt(ended, "tasks");
  if (JSON.stringify(objectAt(again, "tasks")) !== JSON.stringify(tasks))
    violated("the tasks of the ended graph have changed");
  return new GraphCheck(work, tasks).ends();
}

function graphOf({ name, slots, model }: Program): Opening {
  const elements = slots - FIXED_TASKS;
  const tasks = [
    { id: "top", prompt: promptOf(name, "top") },
    { id: "left", prompt: `${promptOf(name, "left")} {{top.output}}` },
    { id: "right", prompt: `${promptOf(name, "right")} {{top.output}}` },
    { id: "bottom", prompt: `${promptOf(name, "bottom")} {{left.output}} {{right.output}}` },
    { id: "list", prompt: promptOf(name, listSlot(elements)), max_tokens: LIST_TOKENS },
    { id: "each", foreach: "{{list.output.json.items}}", prompt: promptOf(name, "each-{{item}}") },
    { id: "sum", prompt: `${promptOf(name, "sum")} {{each.outputs}}`, run_if: "any" },
    { id: "end", prompt: promptOf(name, "end"), dependencies: ["bottom", "sum"], run_if: "always" },
  ];
  const body = { model, tasks, max_tokens: MAX_TOKENS };
  return { method: "POST", path: "/dag", body, headers: { "idempotency-key": name } };
}

class GraphCheck {
  readonly #work: Work;
  readonly #tasks: object;
  readonly #bill: Bill;
  #completed = 0;

  constructor(work: Work, tasks: object) {
    this.#work = work;
    this.#tasks = tasks;
    this.#bill = work.world.upstream.billOf(work.program.name);
  }

  ends(): Ends {
    const { slots } = this.#work.program;
    const top = this.#check(this.#single("top"), []);
    const left = this.#check(this.#single("left"), [top]);
    const right = this.#check(this.#single("right"), [top]);
    const bottom = this.#check(this.#single("bottom"), [left, right]);
    const list = this.#check(this.#single("list", listSlot(slots - FIXED_TASKS)), []);
    const each = this.#elements(slots - FIXED_TASKS, list);
    const answered = each.filter(({ status }) => status === "completed");
    const sum = this.#check(this.#single("sum"), answered.length > 0 ? answered : [...each, list], "\n\n");
    this.#check(this.#single("end"), []);
    this.#checkOrder(this.#single("end"), [bottom, sum]);
    return { completed: this.#completed, failed: slots - this.#completed };
  }

  /** The task that has one call. */
  #single(id: string, slot = id): Call {
    const task = objectAt(this.#tasks, id);
    const output = Reflect.get(task, "output");
    const code = textAt(objectAt(task, "error"), "code");
    return { id, slot, status: textAt(task, "status"), output: typeof output === "string" ? output : null, code };
  }

  /** The calls of the list's elements; none if there is no list. */
  #elements(count: number, list: Call): Call[] {
    const task = objectAt(this.#tasks, "each");
    if (list.status !== "completed") {
      if (textAt(task, "status") !== "skipped") this.#work.violated(`each is ${textAt(task, "status")} without a list`);
      return [];
    }
    const outputs = listAt(task, "outputs");
    const errors = listAt(task, "errors");
    if (outputs.length !== count) this.#work.violated(`${outputs.length} outputs for ${count} elements`);
    return outputs.map((output, index) => {
      const code = textAt(errors[index] ?? {}, "code");
      const given = typeof output === "string" ? output : null;
      const status = given === null ? "failed" : "completed";
      const call = { id: `each[${index}]`, slot: `each-${index}`, status, output: given, code };
      this.#checkOrder(call, [list]);
      return this.#check(call, []);
    });
  }

  /** A call that needs all of `sources`, whose outputs its prompt has one after another. */
  #check(call: Call, sources: Call[], between = " "): Call {
    const { program, violated } = this.#work;
    const isReady = sources.every(({ status }) => status === "completed");
    if (call.status === "completed") {
      this.#completed += 1;
      const given = sources.length === 0 ? "" : ` ${sources.map(({ output }) => output ?? "").join(between)}`;
      const expected = answerOf(program.name, call.slot, given);
      if (!isReady) violated(`${call.id} completed without its dependencies`);
      else if (call.output !== expected) violated(`${call.id} has the output "${call.output}", not "${expected}"`);
    } else if (isReady) {
      if (call.status !== "failed" || !FAILURES.has(call.code))
        violated(`${call.id} is ${call.status} with ${call.code}`);
    } else {
      if (call.status !== "skipped" || call.code !== "dependency_failed")
        violated(`${call.id} is ${call.status} with ${call.code} after a failed dependency`);
      if (this.#bill.firstAskedMs.has(call.slot)) violated(`${call.id} was skipped, and the provider was asked`);
    }
    this.#checkOrder(call, sources);
    return call;
  }

  /** The provider was not asked for a call before it had answered each of `sources` that completed. */
  #checkOrder(call: Call, sources: Call[]): void {
    const askedMs = this.#bill.firstAskedMs.get(call.slot);
    if (askedMs === undefined) return;
    for (const { id, slot, status } of sources) {
      if (status !== "completed") continue;
      const answeredMs = this.#bill.firstAnsweredMs.get(slot);
      if (answeredMs === undefined || answeredMs > askedMs)
        this.#work.violated(`${call.id} was asked at ${askedMs}, ${id} answered at ${answeredMs}`);
    }
  }
}
