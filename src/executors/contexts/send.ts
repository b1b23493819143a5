/** Sends the requests of calls that refer to contexts: the text is read when a request is sent, and shared by all of them. */
import type { CacheMark, CallBody, Outcome, PlacedContext } from "../../call.ts";
import { noContext } from "../../contexts/resolve.ts";
import type { Reason } from "../../errors.ts";
import {
  BODY_HELD_MS_MAX,
  BODY_RETRY_MS,
  CONTEXT_HELD_ENTRY_BYTES,
  CONTEXT_HELD_IDLE_MS_MAX,
  CONTEXT_WRITE_BYTES,
  CONTEXTS_HELD_BYTES_MAX,
} from "../../limits.ts";
import type { RunCaller } from "../../objects/clients/caller.ts";
import type { ExchangeDeps } from "../../providers/exchange.ts";
import { failed } from "../../providers/classify.ts";
import { HeldTexts } from "./held-texts.ts";
import { bodyWithMarker, cutText, jsonInside, partsOf } from "./insert.ts";

/** The texts that this isolate holds. */
export const heldTexts = new HeldTexts(
  {
    bytesMax: CONTEXTS_HELD_BYTES_MAX,
    entryBytes: CONTEXT_HELD_ENTRY_BYTES,
    idleMsMax: CONTEXT_HELD_IDLE_MS_MAX,
    ageMsMax: BODY_HELD_MS_MAX,
  },
  Date.now,
);

type Fetch = ExchangeDeps["fetch"];

/** The run whose texts are read. */
export type TextRun = Pick<RunCaller, "runId" | "readText">;

/** A call that refers to a context, as it is sent. */
export class ContextCall {
  /** The marker in place of the text in requests: nobody can guess it, so no text of a client has it. */
  readonly #marker = `[context ${crypto.randomUUID()}]`;
  readonly #context: PlacedContext;
  readonly #run: TextRun;
  #fault: { failure: "rejected" | "transient"; reason: Reason } | null = null;

  constructor(context: PlacedContext, run: TextRun) {
    this.#context = context;
    this.#run = run;
  }

  /** The body to build requests of. */
  bodyOf(body: CallBody, mark?: CacheMark): CallBody {
    return bodyWithMarker(body, this.#marker, mark);
  }

  /** A `fetch` that puts the text into each request. It rejects if there is none: then `outcomeOf` knows why. */
  fetchWith(fetch: Fetch): Fetch {
    return async (url, init) => {
      const text = await this.#text();
      try {
        const parts = partsOf(String(init.body), this.#marker, text.bytes);
        return await fetch(url, { ...init, body: streamOf(parts) });
      } finally {
        // Headers have come, or will not come: the request is sent.
        text.release();
      }
    };
  }

  /** The outcome of an attempt: a request that was not sent, because its text is gone or was not there in time, is free. */
  outcomeOf(outcome: Outcome): Outcome {
    if (this.#fault === null || outcome.kind === "success") return outcome;
    const { failure, reason } = this.#fault;
    return { ...failed(failure, reason), unsent: true, latencyMs: outcome.latencyMs };
  }

  async #text() {
    const { id, from, to, object } = this.#context;
    const { runId } = this.#run;
    const name = `${runId} ${object ?? id} ${from} ${to} ${this.#context.skip ?? ""} ${this.#context.take ?? ""}`;
    this.#fault = null;
    try {
      const text = await heldTexts.take(name, to - from, () => this.#load());
      if (text !== null) return text;
    } catch (error) {
      const message = "the text of the call's context could not be read";
      this.#fault = { failure: "transient", reason: { reason: "overloaded", message, retryAfterMs: BODY_RETRY_MS } };
      throw error;
    }
    this.#fault = { failure: "rejected", reason: noContext(id) };
    throw new Error("the context is gone");
  }

  async #load(): Promise<Uint8Array | null> {
    const { id, from, to, object, skip, take } = this.#context;
    if (from === to) return new Uint8Array();
    const read = await this.#run.readText({ id, from, to, ...(object === undefined ? {} : { object }) });
    if (read === null) return null;
    return jsonInside(take === undefined ? read : cutText(read, skip ?? 0, take));
  }
}

/** A body of known length whose parts are not copied into one. */
function streamOf(parts: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const { readable, writable } = new FixedLengthStream(parts.reduce((sum, part) => sum + part.length, 0));
  const write = async (): Promise<void> => {
    const writer = writable.getWriter();
    for (const part of parts) {
      // The runtime copies what it is given until it is sent.
      for (let at = 0; at < part.length; at += CONTEXT_WRITE_BYTES) {
        await writer.write(part.subarray(at, at + CONTEXT_WRITE_BYTES));
      }
    }
    await writer.close();
  };
  // The reader of the body reports that it broke off.
  write().catch(() => undefined);
  return readable;
}
