/** What a relayed call sends, and what its attempt ends as. */
import type { Endpoint, Lease, Outcome, Usage } from "../../call.ts";
import { failed } from "../classify.ts";
import type { Upstream } from "../config/types.ts";
import type { EditedStreams } from "./batches.ts";
import type { Exchange, ExchangeDeps, StartTimer } from "../exchange.ts";
import type { UpstreamRequest } from "../kinds/kind.ts";
import { shownCode } from "../redact.ts";

/** What is sent where. `request` goes out as it is; its headers contain the provider key. */
export type RelayJob = {
  upstream: Upstream;
  lease: Lease;
  endpoint: Endpoint;
  request: UpstreamRequest<Uint8Array>;
  /** Whether the request is for an event stream, and whether its usage chunk was requested by the client or injected here. */
  stream: boolean;
  usageChunk: "requested" | "injected" | "absent";
  /** Whether the client gets a stream as its upstream writes it, with its cost behind it. */
  passes: boolean;
  /** Whether the runtime may move such a stream, past the search for the upstream's secrets. */
  moves: boolean;
  /** Whether the request is for embeddings as base64. */
  base64: boolean;
  costUsdOf: (usage: Usage) => number | null;
};

/** A pipe whose writer waits for its reader. */
export type Pipe = { readable: ReadableStream<Uint8Array>; writable: WritableStream<Uint8Array> };

export type RelayDeps = ExchangeDeps & {
  pipe: () => Pipe;
  /** Times when a stream is looked at; unlike `timer`, it keeps nothing alive. */
  lookTimer: StartTimer;
  /** The streams that this isolate edits. */
  edited: EditedStreams;
  /** Called once when the answer begins; absent = nobody waits for that. */
  begun?: () => void;
};

/** What an answer ended as, known before its last bytes go to the client. `id` is the upstream's id of the answer. */
export type RelayEnd = { outcome: Outcome; id: string | null };

/** An error answer as its upstream wrote it, with the headers that clients get. */
export type ErrorAnswer = { status: number; headers: Record<string, string>; text: string };

export type RelayFailed = { kind: "failed"; outcome: Outcome; answer: ErrorAnswer | null };

export type RelayAnswered = {
  kind: "answered";
  status: number;
  /** Those that clients get. */
  headers: Record<string, string>;
  body: ReadableStream<Uint8Array> | Uint8Array;
  /** Never rejects. */
  ended: Promise<RelayEnd>;
};

export type Relayed = RelayFailed | RelayAnswered;

/** An attempt whose answer is being relayed. */
export type RelayInProgress = { job: RelayJob; exchange: Exchange; deps: RelayDeps };

/** What an answer counts as that reports an error after its relay began, or in a file of answers; `code` is the upstream's code, if it gave one. */
export function reportedError(
  { upstream }: Pick<RelayJob, "upstream">,
  message: string,
  code: string | null = null,
): ReturnType<typeof failed> {
  const { name } = upstream;
  const shown = code === null ? "" : shownCode(code, upstream);
  const named = shown === "" ? {} : { upstreamCode: shown };
  return failed("unknown", {
    reason: "upstream_error",
    upstream: name,
    status: null,
    message,
    retryable: true,
    ...named,
  });
}
