/** A relayed attempt, with everything around it faked: the upstream's connection, the clock and the client. */
import { expect } from "vitest";
import type { Outcome } from "../../../../src/call.ts";
import { EditedStreams } from "../../../../src/providers/relay/batches.ts";
import { relay } from "../../../../src/providers/relay/relay.ts";
import type {
  RelayAnswered,
  RelayDeps,
  Relayed,
  RelayEnd,
  RelayFailed,
  RelayJob,
} from "../../../../src/providers/relay/types.ts";
import { KEY, makeLease, makeUpstream, realTimer } from "../make.ts";

const encoder = new TextEncoder();

export const bytesOf = (text: string): Uint8Array => encoder.encode(text);

export function requestOf(body: string) {
  return {
    url: "https://acme.test/v1/chat/completions",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: bytesOf(body),
  };
}

export function makeJob(fields: Partial<RelayJob> = {}): RelayJob {
  return {
    upstream: makeUpstream(),
    lease: makeLease(),
    endpoint: "chat",
    request: requestOf('{"model":"gpt-x","messages":[]}'),
    stream: false,
    usageChunk: "absent",
    passes: false,
    moves: false,
    base64: false,
    // $1 and $2 per million tokens.
    costUsdOf: ({ promptTokens, completionTokens }) => (promptTokens + 2 * completionTokens) / 1e6,
    ...fields,
  };
}

/**
 * A stream's two copies as the runtime makes them: what arrived before a break is read before the break is noticed, while
 * those of Node throw it away.
 */
function copiesOf(stream: ReadableStream<Uint8Array>): [ReadableStream<Uint8Array>, ReadableStream<Uint8Array>] {
  const reader = stream.getReader();
  const queues: [Uint8Array[], Uint8Array[]] = [[], []];
  const source: { end: { error?: unknown } | null } = { end: null };
  let reading: Promise<void> | null = null;
  const readOn = async (): Promise<void> => {
    try {
      const { done, value } = await reader.read();
      if (done) source.end = {};
      else for (const queue of queues) queue.push(value.slice());
    } catch (error) {
      source.end = { error };
    }
    reading = null;
  };
  const copy = (queue: Uint8Array[]): ReadableStream<Uint8Array> =>
    new ReadableStream({
      type: "bytes",
      pull: async (controller) => {
        while (queue.length === 0 && source.end === null) await (reading ??= readOn());
        const next = queue.shift();
        if (next !== undefined) return controller.enqueue(next);
        if (source.end !== null && "error" in source.end) return controller.error(source.end.error);
        controller.close();
        controller.byobRequest?.respond(0);
      },
    });
  return [copy(queues[0]), copy(queues[1])];
}

/** The upstream's side of an answer's body: a test says what comes when, and sees what was asked for. */
export class Source {
  pulled = 0;
  cancelled = false;
  readonly stream: ReadableStream<Uint8Array>;
  #controller: ReadableByteStreamController | undefined;

  /** With `pull`, the body is made as it is read; without, `push` makes it. */
  constructor(pull?: (at: number) => string | Uint8Array | null) {
    this.stream = new ReadableStream(
      {
        // A stream of bytes, as the runtime's are.
        type: "bytes",
        start: (controller) => void (this.#controller = controller),
        pull: (controller) => {
          this.pulled += 1;
          if (pull === undefined) return;
          const text = pull(this.pulled - 1);
          if (text === null) this.close();
          else controller.enqueue(typeof text === "string" ? bytesOf(text) : text);
        },
        cancel: () => void (this.cancelled = true),
      },
      { highWaterMark: 0 },
    );
    this.stream.tee = () => copiesOf(this.stream);
  }

  static of(...texts: string[]): Source {
    return new Source((at) => texts[at] ?? null);
  }

  push(text: string): void {
    this.#controller?.enqueue(bytesOf(text));
  }

  close(): void {
    this.#controller?.close();
    // A read into a buffer of the reader's ends only when it is answered.
    this.#controller?.byobRequest?.respond(0);
  }

  break(error: Error = new TypeError("terminated")): void {
    this.#controller?.error(error);
  }
}

export type Asked = { url: string; init: RequestInit };

/** What `fetch` does in a test, and the clock, which a test moves by hand. */
export class Attempt {
  readonly controller = new AbortController();
  readonly asked: Asked[] = [];
  nowMs = 1_000;
  timer: { ms: number; elapsed: () => void; stopped: boolean } | null = null;
  readonly #answer: (asked: Asked) => Promise<Response>;

  constructor(answer: (asked: Asked) => Promise<Response> | Response) {
    this.#answer = async (asked) => answer(asked);
  }

  /** An attempt that is answered with a body of `source`, which breaks when the attempt is aborted, as a real one does. */
  static answered(source: Source, init: ResponseInit = {}): Attempt {
    const attempt = new Attempt(() => new Response(source.stream, init));
    attempt.controller.signal.addEventListener("abort", () =>
      source.break(new DOMException("This operation was aborted", "AbortError")),
    );
    return attempt;
  }

  get deps(): RelayDeps {
    return {
      fetch: async (url, init) => {
        this.asked.push({ url, init });
        return await this.#answer({ url, init });
      },
      now: () => this.nowMs,
      timer: (ms, elapsed) => {
        const timer = { ms, elapsed, stopped: false };
        this.timer = timer;
        return () => void (timer.stopped = true);
      },
      controller: this.controller,
      pipe: () => new TransformStream<Uint8Array, Uint8Array>(),
      lookTimer: realTimer,
      edited: new EditedStreams(),
    };
  }

  run(job: RelayJob = makeJob()): Promise<Relayed> {
    return relay(job, this.deps);
  }

  /** The attempt's time limit passes. */
  timeOut(): void {
    this.timer?.elapsed();
  }
}

export function answeredOf(relayed: Relayed): RelayAnswered {
  if (relayed.kind !== "answered") throw new Error(`failed: ${JSON.stringify(relayed.outcome)}`);
  return relayed;
}

export function failedOf(relayed: Relayed): RelayFailed {
  if (relayed.kind !== "failed") throw new Error("answered");
  return relayed;
}

export function readerOf({ body }: RelayAnswered): ReadableStreamDefaultReader<Uint8Array> {
  if (body instanceof Uint8Array) throw new Error("the body was read whole");
  return body.getReader();
}

/** Everything that the client gets, and whether the body ended in order. */
export async function heard(relayed: RelayAnswered): Promise<{ text: string; broke: boolean }> {
  if (relayed.body instanceof Uint8Array) return { text: new TextDecoder().decode(relayed.body), broke: false };
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of relayed.body) text += decoder.decode(chunk, { stream: true });
    return { text, broke: false };
  } catch {
    return { text, broke: true };
  }
}

/** What the client got and what the attempt came to. */
export async function both(relayed: Relayed): Promise<{ text: string; broke: boolean } & RelayEnd> {
  const answered = answeredOf(relayed);
  const [client, end] = await Promise.all([heard(answered), answered.ended]);
  return { ...client, ...end };
}

export function successOf(outcome: Outcome): Extract<Outcome, { kind: "success" }> {
  expect(outcome.kind).toBe("success");
  if (outcome.kind !== "success") throw new Error("failed");
  return outcome;
}

/** The body of a chat completion, with white space and digits that a re-serialisation would change. */
export const chat = (usage = '{"prompt_tokens":10, "completion_tokens":5,"total_tokens":15}'): string =>
  `{ "id":"chatcmpl-1","object":"chat.completion","created":12345678901234567890,"model":"gpt-x-2026", "choices":[{"index":0,"message":{"role":"assistant","content":"h\\u00e9 😀"},"finish_reason":"stop"}],"usage":${usage},"x":1.0e+2}\n`;

/** Events of a streamed chat completion that is whole: two pieces, the usage chunk, the end. */
export const CHAT_EVENTS = [
  'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-2026","choices":[{"index":0,"delta":{"content":"h\\u00e9"},"finish_reason":null}]}\n\n',
  'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-2026","choices":[{"index":0,"delta":{"content":" 😀"},"finish_reason":"stop"}]}\n\n',
  'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-2026","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}\n\n',
  "data: [DONE]\n\n",
] as const;

export const EVENTS = { headers: { "content-type": "text/event-stream; charset=utf-8" } };

/** A timer that only a test moves. */
export class FakeTimer {
  readonly #pending = new Map<() => void, number>();

  /** What was started and not stopped. */
  get pendingMs(): number[] {
    return [...this.#pending.values()];
  }

  readonly start = (ms: number, elapsed: () => void): (() => void) => {
    this.#pending.set(elapsed, ms);
    return () => void this.#pending.delete(elapsed);
  };

  /** Lets all of them elapse. */
  elapse(): void {
    const due = [...this.#pending.keys()];
    this.#pending.clear();
    for (const elapsed of due) elapsed();
  }
}
