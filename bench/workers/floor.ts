/**
 * The floor of a relay: a Worker that parses a chat completion's request, relays it, and parses the answer, or passes its stream on.
 * `LEDGER` "shared" adds the least that a durable ledger takes: each call is one RPC to one object before it is sent, which
 * reserves for it and settles the calls before it; the object commits one row per turn for all calls that wait.
 */
import { DurableObject } from "cloudflare:workers";

type Bindings = { UPSTREAM: string; LEDGER: "none" | "shared"; FLOOR: DurableObjectNamespace<FloorLedger> };
type Completion = { model: string; stream?: boolean; usage?: { total_tokens: number } };
/** The settled calls of this instance that its next reservation takes along. */
type Settlement = { id: number; tokens: number };

const settled: Settlement[] = [];
let lastId = 0;

export default {
  async fetch(request: Request, env: Bindings): Promise<Response> {
    const path = new URL(request.url).pathname;
    // The suite of ledgers asks for a reservation alone.
    if (path === "/bench/reserve") {
      await reserved(env);
      return new Response("{}");
    }
    if (path === "/bench/ledger") return Response.json(await env.FLOOR.getByName("ledger").counts());
    const text = await request.text();
    const wanted: Completion = JSON.parse(text);
    const id = env.LEDGER === "shared" ? await reserved(env) : null;
    const answer = await fetch(`${env.UPSTREAM}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer bench" },
      body: text,
    });
    if (wanted.stream === true) {
      if (id !== null) settled.push({ id, tokens: 0 });
      return new Response(answer.body, answer);
    }
    const body = await answer.text();
    const { usage }: Completion = JSON.parse(body);
    if (id !== null) settled.push({ id, tokens: usage?.total_tokens ?? 0 });
    return new Response(body, { status: answer.status, headers: { "content-type": "application/json" } });
  },
};

async function reserved(env: Bindings): Promise<number> {
  const id = ++lastId;
  await env.FLOOR.getByName("ledger").reserve(id, settled.splice(0));
  return id;
}

/** A ledger that does nothing but keep what it is given, in order. */
export class FloorLedger extends DurableObject<Bindings> {
  #waiting: number[] = [];
  #settled: Settlement[] = [];
  #turn: Promise<void> | null = null;
  #counts = { commits: 0, rows: 0 };

  constructor(context: DurableObjectState, env: Bindings) {
    super(context, env);
    context.storage.sql.exec("CREATE TABLE IF NOT EXISTS turns (seq INTEGER PRIMARY KEY, calls TEXT NOT NULL) STRICT");
  }

  /** Resolves once the reservation is written; the reply leaves once it is durable. */
  async reserve(id: number, settlements: Settlement[]): Promise<void> {
    this.#waiting.push(id);
    this.#settled.push(...settlements);
    await (this.#turn ??= this.#write());
  }

  counts(): { commits: number; rows: number } {
    return this.#counts;
  }

  /** Writes for all that has arrived by the next turn of the event loop. */
  async #write(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.#turn = null;
    const calls = JSON.stringify({ reserved: this.#waiting, settled: this.#settled });
    this.#waiting = [];
    this.#settled = [];
    this.ctx.storage.sql.exec("INSERT INTO turns (calls) VALUES (?)", calls);
    this.#counts = { commits: this.#counts.commits + 1, rows: this.#counts.rows + 1 };
  }
}
