/** The lines of a batch's files: those that go to a provider, and those that come back, on their way into the run. */
import { readCall } from "../../engine/call-page.ts";
import { groupSeqOf, indexOf } from "../../engine/slot.ts";
import { PROVIDER_SETTLE_CHARS_MAX, PROVIDER_SETTLE_LINES_MAX } from "../../limits.ts";
import type { ProviderAnswer, ProviderClaim, ProviderJob } from "../../run-api/provider-batch.ts";
import { bodyToSend } from "../../schema/sent.ts";
import type { Upstream } from "../../upstream/config/types.ts";
import { buildRequest } from "../../upstream/request.ts";
import { outcomeOfLine, readLine, type LineCall, type ReadLine } from "./output.ts";

/** A claimed page, as it is kept from its claim to its upload. */
export type Page = Extract<ProviderClaim, { kind: "page" }>;

/** A line of the input file. */
export function lineOf({ lease, callJson }: ProviderJob, defaultsJson: string, upstream: Upstream): string {
  const body = bodyToSend(upstream, lease.model, readCall(callJson, defaultsJson), undefined);
  // The request is text already, and JSON.
  const request = buildRequest(upstream, lease, body).body;
  return `{"custom_id":${JSON.stringify(lease.attemptId)},"method":"POST","url":"/v1/chat/completions","body":${request}}\n`;
}

/** The lines of a batch's files, on their way into the run. */
export class Reading {
  readonly #seq: number;
  readonly #about: { upstream: Upstream; model: string; now: () => number };
  readonly #checked: ReadonlyMap<string, NonNullable<LineCall["checked"]>>;
  #answers: ProviderAnswer[] = [];
  #chars = 0;

  constructor(seq: number, about: { upstream: Upstream; model: string; calls: Page; now: () => number }) {
    this.#seq = seq;
    this.#about = about;
    const { jobs, defaultsJson } = about.calls;
    const checked = new Map<string, NonNullable<LineCall["checked"]>>();
    for (const job of jobs) {
      const schema = schemaOf(job, defaultsJson);
      if (schema !== undefined) checked.set(job.lease.attemptId, { schema, lease: job.lease });
    }
    this.#checked = checked;
  }

  get isFull(): boolean {
    return this.#answers.length >= PROVIDER_SETTLE_LINES_MAX || this.#chars >= PROVIDER_SETTLE_CHARS_MAX;
  }

  /** The index of a line's slot; null = the group has no such slot. */
  add(text: string): number | null {
    const line = readLine(text);
    const index = line === null ? null : indexIn(line, this.#seq);
    if (line === null || index === null) return null;
    const { upstream, model, now } = this.#about;
    const checked = this.#checked.get(line.customId);
    const call = { upstream, model, ...(checked === undefined ? {} : { checked }) };
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

export function schemaOf({ callJson }: ProviderJob, defaultsJson: string): Record<string, unknown> | undefined {
  return readCall(callJson, defaultsJson).schema;
}
