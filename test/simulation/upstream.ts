/**
 * The provider: it answers chat completions after a while, refuses some, breaks some off, and keeps the only bill that counts.
 * A prompt says for whom it is (`promptOf`), so that the bill can be compared with the gateway's books.
 */
import { createHash } from "node:crypto";
import type { Random } from "../../bench/adversary/random.ts";
import type { Activity } from "./activity.ts";
import type { VirtualClock } from "./clock.ts";

/** Prices in nano-USD per token, as the gateway is configured with. */
export const PROMPT_TOKEN_NANO_USD = 1_000;
export const COMPLETION_TOKEN_NANO_USD = 2_000;

/** Fetches of one activity that may wait for headers; the platform holds the others back. */
const WAITING_FETCHES_MAX = 6;

/** What the provider does with a call, by weight. */
export type Personality = readonly (readonly [Deed, number])[];
type Deed = "answers" | "refuses" | "fails" | "resets" | "breaks off" | "hangs";

export const HONEST: Personality = [["answers", 1]];
/** Refuses at any load, which a gate takes for a limit: it lets some calls a second through. */
export const MOODY: Personality = [
  ["answers", 0.93],
  ["refuses", 0.02],
  ["fails", 0.02],
  ["resets", 0.01],
  ["breaks off", 0.01],
  ["hangs", 0.01],
];
/** Refuses what is above the limit of its key, and a few calls below it. */
export const LIMITED: Personality = [
  ["answers", 0.949],
  ["refuses", 0.001],
  ["fails", 0.02],
  ["resets", 0.01],
  ["breaks off", 0.01],
  ["hangs", 0.01],
];
/** Calls that a key of a limited provider may have in flight. Two wide batches at one key have more. */
const KEY_CALLS_MAX = 400;

/** What one program's calls have cost, and how often each of its slots was answered; times in epoch ms. */
export type Bill = {
  nanoUsd: number;
  calls: number;
  answered: Map<string, number>;
  doubtful: number;
  /** When a slot's first call came, and when its first answer was complete. */
  firstAskedMs: Map<string, number>;
  firstAnsweredMs: Map<string, number>;
  /** When the last call of any slot came; -Infinity = none did. */
  lastAskedMs: number;
};

export type UpstreamDeps = {
  clock: VirtualClock;
  random: Random;
  /** How the provider at an address behaves now. */
  personality: (host: string) => Personality;
  /** Called when a bill has grown. */
  billed: (program: string, bill: Bill) => void;
  /** How long each call takes; absent = each another time. */
  takes?: CallTimes | undefined;
};

/** When the headers of an answer leave the provider, and when its end does, ms after the call has come. */
export type CallTimes = { headersMs: number; wholeMs: number };

/** The prompt of a program's slot. */
export function promptOf(program: string, slot: string): string {
  return `program ${program} slot ${slot}: what is the answer?`;
}

/** A slot whose answer is JSON with a list of so many `items`. */
export function listSlot(items: number): string {
  return `list-${items}`;
}

/** The answer that only this slot may get. It depends on what the prompt gives after the question. */
export function answerOf(program: string, slot: string, given = ""): string {
  const items = LIST.exec(slot)?.[1];
  if (items !== undefined)
    return JSON.stringify({ of: program, items: Array.from({ length: Number(items) }, (_, index) => String(index)) });
  const answer = `answer of ${program} to ${slot}`;
  return given === "" ? answer : `${answer} given ${createHash("sha256").update(given).digest("hex").slice(0, 8)}`;
}

const LIST = /^list-(\d+)$/;
const PROMPT = /^program (\S+) slot (\S+): what is the answer\?(.*)$/s;

type Call = { program: string; slot: string; given: string; promptTokens: number; cap: number; isStream: boolean };

/** Who pays for a slot: its program, and each program that this one is a part of (`p1/c0` of `p1`). */
function payersOf({ program, slot }: Call): { program: string; slot: string }[] {
  const parts = program.split("/");
  return parts.map((_, index) => ({
    program: parts.slice(0, index + 1).join("/"),
    slot: [...parts.slice(index + 1), slot].join("/"),
  }));
}

export class Upstream {
  readonly #deps: UpstreamDeps;
  readonly #bills = new Map<string, Bill>();
  inFlight = 0;
  inFlightMost = 0;
  /** Slots that were answered, each once. */
  answered = 0;
  /** Calls in flight by address. */
  readonly #inFlight = new Map<string, number>();

  constructor(deps: UpstreamDeps) {
    this.#deps = deps;
  }

  billOf(program: string): Bill {
    const known = this.#bills.get(program);
    if (known !== undefined) return known;
    const bill: Bill = {
      nanoUsd: 0,
      calls: 0,
      answered: new Map(),
      doubtful: 0,
      firstAskedMs: new Map(),
      firstAnsweredMs: new Map(),
      lastAskedMs: -Infinity,
    };
    this.#bills.set(program, bill);
    return bill;
  }

  /** Forgets the slots of a program whose answers nobody compares any more. The sums stay. */
  forgetSlots(program: string): void {
    const { answered, firstAskedMs, firstAnsweredMs } = this.billOf(program);
    for (const slots of [answered, firstAskedMs, firstAnsweredMs]) slots.clear();
  }

  /** What the gateway's `fetch` does. Never settles once its activity has ended. */
  fetch(from: Activity, url: string, init: RequestInit): Promise<Response> {
    from.calls += 1;
    return new Promise((resolve, reject) => {
      const exchange = new UpstreamExchange(readCall(String(init.body)), from, this.#exchangeDeps(new URL(url).host));
      const begin = (): void => {
        if (exchange.isOver) return from.heldFetches.shift()?.();
        from.waitingFetches += 1;
        const arrived = (): void => {
          from.waitingFetches -= 1;
          from.heldFetches.shift()?.();
        };
        exchange.begin(arrived);
      };
      exchange.awaited({ resolve, reject });
      if (init.signal?.aborted === true) return exchange.abort();
      init.signal?.addEventListener("abort", () => exchange.abort());
      if (from.waitingFetches < WAITING_FETCHES_MAX) begin();
      else from.heldFetches.push(begin);
    });
  }

  #exchangeDeps(host: string): ExchangeDeps {
    const moves = (calls: 1 | -1): number => {
      const atKey = (this.#inFlight.get(host) ?? 0) + calls;
      this.#inFlight.set(host, atKey);
      this.inFlight += calls;
      return atKey;
    };
    const { random, personality, clock, takes } = this.#deps;
    return {
      clock,
      random,
      takes,
      entered: (call) => {
        this.#asked(call);
        const atKey = moves(1);
        this.inFlightMost = Math.max(this.inFlightMost, this.inFlight);
        const behaves = personality(host);
        const deed = random.weighted(behaves);
        return behaves === LIMITED && atKey > KEY_CALLS_MAX ? "refuses" : deed;
      },
      left: () => void moves(-1),
      bill: (call, nanoUsd, how) => {
        const [whole, ...parts] = payersOf(call);
        if (whole === undefined) return;
        if (how === "answered" && !this.billOf(whole.program).answered.has(whole.slot)) this.answered += 1;
        for (const payer of [whole, ...parts]) this.#bill(payer, nanoUsd, how);
      },
    };
  }

  #asked(call: Call): void {
    const { nowMs } = this.#deps.clock;
    for (const { program, slot } of payersOf(call)) {
      const bill = this.billOf(program);
      bill.lastAskedMs = nowMs;
      if (!bill.firstAskedMs.has(slot)) bill.firstAskedMs.set(slot, nowMs);
    }
  }

  #bill({ program, slot }: { program: string; slot: string }, nanoUsd: number, how: CallEnd): void {
    const bill = this.billOf(program);
    bill.nanoUsd += nanoUsd;
    bill.calls += 1;
    if (how === "answered") {
      bill.answered.set(slot, (bill.answered.get(slot) ?? 0) + 1);
      if (!bill.firstAnsweredMs.has(slot)) bill.firstAnsweredMs.set(slot, this.#deps.clock.nowMs);
    } else if (nanoUsd > 0) bill.doubtful += 1;
    this.#deps.billed(program, bill);
  }
}

type CallEnd = "answered" | "broken" | "refused";

type ExchangeDeps = Pick<UpstreamDeps, "clock" | "random" | "takes"> & {
  /** The call has arrived. Returns what the provider does with it. */
  entered: (call: Call) => Deed;
  left: () => void;
  bill: (call: Call, nanoUsd: number, how: CallEnd) => void;
};

type Asker = { resolve: (response: Response) => void; reject: (error: Error) => void };

/** One request and its answer. */
class UpstreamExchange {
  readonly #call: Call;
  readonly #from: Activity;
  readonly #deps: ExchangeDeps;
  /** Who waits for headers; null = nobody. */
  #asker: Asker | null = null;
  #headersArrived: () => void = () => undefined;
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #state: "on its way" | "at the provider" | "over" = "on its way";

  constructor(call: Call, from: Activity, deps: ExchangeDeps) {
    this.#call = call;
    this.#from = from;
    this.#deps = deps;
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  awaited(asker: Asker): void {
    this.#asker = asker;
  }

  /** @param headersArrived Called when headers have come, or never will. */
  begin(headersArrived: () => void): void {
    this.#headersArrived = headersArrived;
    const { clock, random, entered, takes } = this.#deps;
    // The provider notices sooner or later that who asked is gone, and stops.
    this.#from.whenEnded(() => clock.after(random.fraction() * 500, () => this.#end(this.#partNanoUsd(), "broken")));
    clock.after(random.fraction() * 20, () => {
      if (this.isOver) return;
      this.#state = "at the provider";
      const deed = entered(this.#call);
      const headersMs = takes?.headersMs ?? 100 + 2_000 * random.fraction() ** 3;
      clock.after(headersMs, () => this.isOver || this.#does(deed));
    });
  }

  /** Who asked has closed the connection. */
  abort(): void {
    if (this.isOver) return;
    const error = new DOMException("aborted", "AbortError");
    if (this.#asker !== null) this.#refuse(error);
    else this.#break(error);
    this.#end(this.#partNanoUsd(), "broken");
  }

  #does(deed: Deed): void {
    switch (deed) {
      case "hangs":
        return;
      case "resets":
        this.#refuse(new Error("Network connection lost."));
        return this.#end(this.#partNanoUsd(), "broken");
      case "refuses":
      case "fails": {
        const error = { error: { message: deed === "fails" ? "try again" : "slow down", type: "x", code: "x" } };
        const status = deed === "fails" ? 500 : 429;
        this.#answer(Response.json(error, { status, headers: status === 429 ? { "retry-after": "1" } : {} }));
        return this.#end(0, "refused");
      }
      case "answers":
      case "breaks off":
        return this.#call.isStream ? this.#streams(deed === "answers") : this.#answersWhole(deed === "answers");
    }
  }

  #answersWhole(isWhole: boolean): void {
    this.#deps.clock.after(this.#bodyMs(), () => {
      if (this.isOver) return;
      if (!isWhole) {
        this.#refuse(new Error("Network connection lost."));
        return this.#end(this.#partNanoUsd(), "broken");
      }
      const { text, usage, nanoUsd } = this.#answered();
      const message = { role: "assistant", content: text };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      this.#answer(Response.json({ id: "x", object: "chat.completion", model: "m", choices, usage }));
      this.#end(nanoUsd, "answered");
    });
  }

  #streams(isWhole: boolean): void {
    const { clock } = this.#deps;
    const stream = new ReadableStream<Uint8Array>({ start: (controller) => void (this.#body = controller) });
    this.#answer(new Response(stream, { headers: { "content-type": "text/event-stream" } }));
    const bodyMs = this.#bodyMs();
    const { text, usage, nanoUsd } = this.#answered();
    const half = text.length >> 1;
    clock.after(bodyMs / 2, () => this.#write({ role: "assistant", content: text.slice(0, half) }, null, null));
    clock.after(bodyMs, () => {
      if (this.isOver) return;
      if (!isWhole) {
        this.#break(new Error("Network connection lost."));
        return this.#end(this.#partNanoUsd(), "broken");
      }
      this.#write({ content: text.slice(half) }, "stop", usage);
      this.#body?.enqueue(encoder.encode("data: [DONE]\n\n"));
      this.#body?.close();
      this.#body = null;
      this.#end(nanoUsd, "answered");
    });
  }

  #write(delta: object, finish: string | null, usage: object | null): void {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const event = { id: "x", object: "chat.completion.chunk", model: "m", choices, usage };
    if (!this.isOver) this.#body?.enqueue(encoder.encode(`data: ${JSON.stringify(event)}\n\n`));
  }

  #answered(): { text: string; usage: object; nanoUsd: number } {
    const { program, slot, given, promptTokens, cap } = this.#call;
    const text = answerOf(program, slot, given);
    const completionTokens = Math.min(cap, Math.ceil(text.length / 4));
    const usage = {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    };
    return {
      text,
      usage,
      nanoUsd: promptTokens * PROMPT_TOKEN_NANO_USD + completionTokens * COMPLETION_TOKEN_NANO_USD,
    };
  }

  /** What a provider bills for an answer that nobody got to the end of. */
  #partNanoUsd(): number {
    const { promptTokens, cap } = this.#call;
    const written = Math.floor(this.#deps.random.fraction() * cap);
    return promptTokens * PROMPT_TOKEN_NANO_USD + written * COMPLETION_TOKEN_NANO_USD;
  }

  #bodyMs(): number {
    const { random, takes } = this.#deps;
    if (takes !== undefined) return takes.wholeMs - takes.headersMs;
    return 200 + 18_000 * random.fraction() ** 4;
  }

  #answer(response: Response): void {
    const { clock, random } = this.#deps;
    const asker = this.#asker;
    this.#asker = null;
    clock.after(random.fraction() * 5, () => {
      this.#headersArrived();
      if (this.#from.isAlive) asker?.resolve(response);
    });
  }

  #refuse(error: Error): void {
    const asker = this.#asker;
    this.#asker = null;
    this.#headersArrived();
    if (this.#from.isAlive) asker?.reject(error);
  }

  #break(error: Error): void {
    if (this.#from.isAlive) this.#body?.error(error);
    this.#body = null;
  }

  #end(nanoUsd: number, how: CallEnd): void {
    if (this.isOver) return;
    const wasInside = this.#state === "at the provider";
    this.#state = "over";
    this.#from.calls -= 1;
    if (!wasInside) return;
    this.#deps.left();
    this.#deps.bill(this.#call, nanoUsd, how);
  }
}

const encoder = new TextEncoder();

function readCall(text: string): Call {
  const body: unknown = JSON.parse(text);
  const quoted = /"content":("program (?:[^"\\]|\\.)*")/.exec(text)?.[1] ?? `""`;
  const prompt = String(JSON.parse(quoted));
  const [, program = "", slot = "", given = ""] = PROMPT.exec(prompt) ?? [];
  const numberIn = (name: string): number | null => {
    const value: unknown = typeof body === "object" && body !== null ? Reflect.get(body, name) : null;
    return typeof value === "number" ? value : null;
  };
  const cap = numberIn("max_completion_tokens") ?? numberIn("max_tokens");
  // Whatever has no cap may be answered at any length: a gateway under a limit sends none like that.
  if (program === "" || cap === null) throw new Error(`the provider cannot read the request ${text.slice(0, 500)}`);
  const isStream = typeof body === "object" && body !== null && Reflect.get(body, "stream") === true;
  return { program, slot, given, promptTokens: Math.ceil(prompt.length / 4), cap, isStream };
}
