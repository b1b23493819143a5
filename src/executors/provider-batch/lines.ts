/** The lines of a batch's files: those that go to a provider, and those that come back, on their way into the run. */
import { parseExact } from "../../text/json/exact.ts";
import { batchUrl } from "../../batch/endpoints.ts";
import type { CallBody, Endpoint, Lease } from "../../call.ts";
import { readCall } from "../../run/queue/call-page.ts";
import { groupSeqOf, indexOf } from "../../run/queue/slot.ts";
import { PROVIDER_SETTLE_CHARS_MAX, PROVIDER_SETTLE_LINES_MAX } from "../../limits.ts";
import type { ProviderAnswer, ProviderClaim, ProviderJob } from "../../objects/methods/provider-batch.ts";
import { bodyToSend } from "../../text/schema/sent.ts";
import type { Upstream } from "../../providers/config/types.ts";
import { schemaPlace } from "../../providers/attempt.ts";
import type { BatchForm, BuiltRequest } from "../../providers/kinds/kind.ts";
import { kindOf } from "../../providers/kinds/table.ts";
import { buildRawRequest } from "../../providers/stored-request.ts";
import { messageIdOf, messagePrefix } from "./message-id.ts";
import { outcomeOfLine, readLine, type LineCall, type ReadLine } from "./output.ts";

/** A claimed page, as it is kept from its claim to its upload. */
export type Page = Extract<ProviderClaim, { kind: "page" }>;

/** How a batch has a request: as a line of its file, or as an element of its creation. `body`: JSON text. */
const FORMS: Readonly<
  Record<BatchForm, (request: { attemptId: string; endpoint: Endpoint; body: string; tag: string }) => string>
> = {
  files: ({ attemptId, endpoint, body }) =>
    `{"custom_id":${JSON.stringify(attemptId)},"method":"POST","url":"${batchUrl(endpoint)}","body":${body}}\n`,
  messages: ({ attemptId, body, tag }) =>
    `{"custom_id":${JSON.stringify(messageIdOf(attemptId, messagePrefix(tag)))},"params":${body}}`,
};

/** A request of a batch with this tag; null = the upstream has no such request. */
export function lineOf(
  { lease, callJson }: ProviderJob,
  { defaultsJson, upstream, tag }: { defaultsJson: string; upstream: Upstream; tag: string },
): string | null {
  const { batches } = kindOf(upstream);
  const body = readCall(callJson, defaultsJson, parseExact);
  const built = body.raw === undefined ? chatOf(upstream, lease, body) : buildRawRequest(upstream, lease, body.raw);
  if (!built.ok || batches === null) return null;
  const { attemptId } = lease;
  // The request is text already, and JSON.
  return FORMS[batches]({ attemptId, endpoint: endpointOf(body) ?? "chat", body: built.request.body, tag });
}

function chatOf(upstream: Upstream, lease: Lease, body: CallBody): BuiltRequest {
  return kindOf(upstream).request(upstream, lease, bodyToSend(schemaPlace(upstream, lease.model), body, undefined));
}

/** The endpoint of a call that is a whole body of its client; null = it is a prompt or messages. */
export function rawEndpointOf({ callJson }: ProviderJob, defaultsJson: string): Endpoint | null {
  return endpointOf(readCall(callJson, defaultsJson));
}

function endpointOf({ raw }: CallBody): Endpoint | null {
  return raw === undefined ? null : raw.endpoint;
}

/** The batch whose files are read. */
type BatchOf = Pick<LineCall, "upstream" | "model" | "endpoint"> & { now: () => number };

/** The lines of a batch's files, on their way into the run. */
export class Reading {
  readonly #seq: number;
  readonly #about: BatchOf;
  /** What calls say of their answers, by the ids of their attempts. */
  readonly #wanted: ReadonlyMap<string, Pick<LineCall, "checked" | "include">>;
  #answers: ProviderAnswer[] = [];
  #chars = 0;

  constructor(seq: number, about: BatchOf & { calls: Page }) {
    this.#seq = seq;
    const { calls, ...batch } = about;
    this.#about = batch;
    const { jobs, defaultsJson } = calls;
    const wanted = new Map<string, Pick<LineCall, "checked" | "include">>();
    for (const { lease, callJson } of jobs) {
      const { schema, include } = readCall(callJson, defaultsJson);
      const checked = schema === undefined ? {} : { checked: { schema, lease } };
      if (schema !== undefined || include !== undefined) {
        wanted.set(lease.attemptId, { ...checked, ...(include !== undefined && { include }) });
      }
    }
    this.#wanted = wanted;
  }

  get isFull(): boolean {
    return this.#answers.length >= PROVIDER_SETTLE_LINES_MAX || this.#chars >= PROVIDER_SETTLE_CHARS_MAX;
  }

  /** The index of a line's slot; null = the group has no such slot. */
  add(text: string): number | null {
    const line = readLine(text);
    const index = line === null ? null : indexIn(line, this.#seq);
    if (line === null || index === null) return null;
    const { now, ...about } = this.#about;
    const call = { ...about, ...this.#wanted.get(line.customId) };
    this.#answers.push({ index, outcome: outcomeOfLine(line, call, now()) });
    this.#chars += text.length;
    return index;
  }

  take(): ProviderAnswer[] {
    const answers = this.#answers;
    this.#answers = [];
    this.#chars = 0;
    return answers;
  }
}

/** The id of a line is that of its attempt, which is the first of its slot. */
const CUSTOM_ID = /^(\d{1,16})\.1$/;

function indexIn({ customId }: ReadLine, seq: number): number | null {
  const slotId = Number(CUSTOM_ID.exec(customId)?.[1] ?? Number.NaN);
  return Number.isSafeInteger(slotId) && groupSeqOf(slotId) === seq ? indexOf(slotId) : null;
}

/** Whether what a call says decides how its answer is read. */
export function decidesReading({ callJson }: ProviderJob, defaultsJson: string): boolean {
  const { schema, include } = readCall(callJson, defaultsJson);
  return schema !== undefined || include !== undefined;
}
