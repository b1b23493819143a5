/** An upstream that answers a plan's calls and keeps its own books. */
import type { ByteCall, ByteReply } from "../support/byte-upstream.ts";
import type { PlannedCall } from "./v1-plan.ts";
import { PRICE_NANO } from "./v1-world.ts";

const EVENTS = { headers: { "content-type": "text/event-stream" } };
const DONE = "data: [DONE]\n\n";
/** Pieces of a streamed answer. */
export const PIECES = 6;

const piece = (at: number): string => `data: {"choices":[{"index":0,"delta":{"content":"piece ${at}"}}]}\n\n`;
const FINISH = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

export class Biller {
  /** nano-USD billed, by the call's number. Truncated answers were billed too, which only the upstream knows. */
  readonly billed = new Map<number, number>();
  /** Attempts that arrived, by the call's number. */
  readonly arrived = new Map<number, number>();
  readonly #calls: ReadonlyMap<number, PlannedCall>;

  constructor(calls: readonly PlannedCall[]) {
    this.#calls = new Map(calls.map((call) => [call.number, call]));
  }

  readonly answer = async ({ body }: ByteCall, reply: ByteReply): Promise<void> => {
    const number = Number(/"content":"(\d+) /.exec(body.toString("utf8"))?.[1]);
    const call = this.#calls.get(number);
    if (call === undefined) throw new Error("a call that is not planned");
    const attempt = (this.arrived.get(number) ?? 0) + 1;
    this.arrived.set(number, attempt);
    if (attempt === 1 && (await this.#failsFirst(call, reply))) return;
    if (call.kind === "400") return refuse(reply, 400);
    if (call.kind === "500 always") return refuse(reply, 500);
    if (call.kind.startsWith("stream") || call.kind.startsWith("left")) return await this.#stream(call, reply);
    await this.#whole(call, reply);
  };

  #bill({ number, usage, kind }: PlannedCall): number {
    const listed = usage.prompt * PRICE_NANO.prompt + usage.completion * PRICE_NANO.completion;
    const cost = kind === "names its cost" ? Math.floor(listed / 2) : listed;
    this.billed.set(number, (this.billed.get(number) ?? 0) + cost);
    return cost;
  }

  async #failsFirst(call: PlannedCall, reply: ByteReply): Promise<boolean> {
    const busy = '{"error":{"message":"busy","code":503}}';
    switch (call.kind) {
      case "500 once":
        refuse(reply, 500, { "retry-after-ms": "1" });
        return true;
      case "429 once":
        refuse(reply, 429, { "retry-after-ms": "1" });
        return true;
      case "error in a 200 once":
        reply.whole(busy);
        return true;
      case "error in a chunked 200 once":
        reply.begin();
        await reply.write(busy.slice(0, 20));
        await reply.write(busy.slice(20));
        reply.end();
        return true;
      case "whole, breaks off once":
        this.#bill(call);
        reply.begin({ headers: { "content-length": "1000" } });
        await reply.write('{"id":');
        reply.reset();
        return true;
      default:
        return false;
    }
  }

  async #whole(call: PlannedCall, reply: ByteReply): Promise<void> {
    const cost = this.#bill(call);
    const { kind } = call;
    const usage =
      kind === "whole, no usage" ? "" : `,"usage":${usageOf(call, kind === "names its cost" ? cost : null)}`;
    const text = `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]${usage}}`;
    if (!kind.startsWith("chunked")) return reply.whole(text);
    reply.begin();
    const middle = Math.floor(text.length / 2);
    await reply.write(text.slice(0, middle));
    if (kind === "chunked, breaks off") {
      await turn();
      return reply.reset();
    }
    await reply.write(text.slice(middle));
    reply.end();
  }

  async #stream(call: PlannedCall, reply: ByteReply): Promise<void> {
    const { kind } = call;
    this.#bill(call);
    // These wait for their client to leave.
    if (kind === "left before headers") return;
    reply.begin(EVENTS);
    for (let at = 0; at < PIECES; at++) {
      if (at === 3 && kind === "left in the middle") return;
      if (at === 3 && kind === "stream, ends early") return reply.end();
      if (at === 3 && kind === "stream, breaks off") return reply.reset();
      if (at === 3 && kind === "stream, reports an error") {
        await reply.write('data: {"error":{"message":"overloaded","code":502}}\n\n');
        return reply.end();
      }
      if (!(await reply.write(piece(at)))) return;
      await turn();
    }
    await reply.write(FINISH);
    if (kind !== "stream, no usage") await reply.write(`data: {"choices":[],"usage":${usageOf(call, null)}}\n\n`);
    await reply.write(DONE);
    reply.end();
  }
}

function usageOf({ usage }: PlannedCall, costNanoUsd: number | null): string {
  const { prompt, completion } = usage;
  const cost = costNanoUsd === null ? {} : { cost: costNanoUsd / 1e9 };
  return JSON.stringify({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...cost,
  });
}

function refuse(reply: ByteReply, status: number, headers: Record<string, string> = {}): void {
  reply.whole('{"error":{"message":"no","type":"t","param":null,"code":null}}', { status, headers });
}

/** Lets what was written go out before what follows. */
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2));
