/**
 * Exports the run's log as spans to the operator's collector: after turns, in batches, a few seconds late. Nothing waits for
 * it. How far it came is stored with each post, so that the next instance goes on there.
 */
import type { GroupHeader } from "../../../src/run/group/group.ts";
import { slotIdOf } from "../../../src/run/queue/slot.ts";
import { groupSalt, groupSeqOfId } from "../../../src/run/queue/group-id.ts";
import type { RunLog } from "../../../src/run/log.ts";
import {
  LOG_EXPORT_CHARS_MAX,
  OTLP_ERROR_PAUSE_MS,
  OTLP_INTERVAL_MS,
  OTLP_POSTS_MAX,
  OTLP_TIMEOUT_MS,
} from "../../../src/limits.ts";
import { afterPost, nextBatch, pauseMs, resultOf, type ExportCursor } from "../../../src/log/otlp/batch.ts";
import { otlpRequest, type Hash, type OtlpRequest } from "../../../src/log/otlp/body.ts";
import { otlpBytes } from "../../../src/log/otlp/protobuf.ts";
import type { OtlpTarget } from "../../../src/log/otlp/settings.ts";
import type { TracedRun } from "../../../src/log/otlp/spans.ts";
import type { RunSettings } from "../../../src/objects/methods/runs.ts";
import type { TraceContext } from "../../../src/trace-context.ts";
import { VERSION } from "../../../src/version.ts";
import type { LogRows } from "../store/log-rows.ts";

/** What the export needs of a run. */
export type ExportedRun = {
  readonly settings: Pick<RunSettings, "id" | "parentId" | "name" | "createdAtMs" | "trace" | "parentTrace">;
  /** A group as it was opened; undefined if there is no such group. */
  storedGroup: (seq: number) => { header: Pick<GroupHeader, "id" | "trace"> } | undefined;
  readonly engine: { readonly log: Pick<RunLog, "lastSeq"> };
  /** Number of the last event in the rows of the log. */
  readonly readableSeq: number;
  addWrite: (write: () => void) => void;
};

/** Where the position is stored. */
export type ExportMeta = {
  get: (name: "exported") => ExportCursor;
  set: (name: "exported", cursor: ExportCursor) => void;
};

/** What the export needs of the object around it. */
export type ExportHost = {
  /** The run; null if it was never opened, or is deleted. */
  readonly run: ExportedRun | null;
  readonly store: { readonly log: Pick<LogRows, "after">; readonly meta: ExportMeta };
  /** Writes the log's newest events to its rows. */
  flushLog: () => Promise<void>;
  /** Changes the run in a turn. */
  change: (change: (run: ExportedRun) => void) => Promise<void>;
};

export type ExportEffects = {
  now: () => number;
  hash: Hash;
  /** The status of the collector's response; null if none arrived. */
  post: (request: OtlpRequest) => Promise<number | null>;
  /** Keeps a promise alive that nothing waits for. */
  keep: (promise: Promise<void>) => void;
  /** An export is over: sets the alarm for the next. */
  over: () => void;
};

export class LogExport {
  readonly #host: ExportHost;
  readonly #effects: ExportEffects;
  #cursor: ExportCursor | null = null;
  #isRunning = false;
  #notBeforeMs = 0;

  constructor(host: ExportHost, effects: ExportEffects) {
    this.#host = host;
    this.#effects = effects;
  }

  /** In how many ms the alarm is to start an export; null = everything is exported. */
  delayMs(nowMs: number): number | null {
    const { run } = this.#host;
    if (run === null || this.#position.seq >= run.engine.log.lastSeq) return null;
    // An export that runs sets the alarm itself when it is over. This one is for the case that its instance is lost.
    if (this.#isRunning) return OTLP_TIMEOUT_MS + OTLP_INTERVAL_MS;
    return Math.max(OTLP_INTERVAL_MS, this.#notBeforeMs - nowMs);
  }

  /** Starts an export, if one is due. */
  start(): void {
    const { run } = this.#host;
    const nowMs = this.#effects.now();
    if (run === null || this.#isRunning || nowMs < this.#notBeforeMs || this.delayMs(nowMs) === null) return;
    this.#isRunning = true;
    this.#effects.keep(this.#runOnce(run));
  }

  async #runOnce(run: ExportedRun): Promise<void> {
    let pause = OTLP_ERROR_PAUSE_MS;
    try {
      await this.#host.flushLog();
      for (let posts = 0; posts < OTLP_POSTS_MAX; posts++) if (!(await this.#exportBatch(run))) break;
      pause = pauseMs(this.#position);
    } catch (error) {
      console.error(`${run.settings.id} could not export its log; it will retry`, error);
    }
    this.#notBeforeMs = this.#effects.now() + pause;
    this.#isRunning = false;
    this.#effects.over();
  }

  /** Exports the next batch. True if the one after it may follow at once. */
  async #exportBatch(run: ExportedRun): Promise<boolean> {
    const cursor = this.#position;
    const rows = this.#host.store.log.after(cursor.seq, LOG_EXPORT_CHARS_MAX);
    const { id } = run.settings;
    const traced = tracedRun(run);
    const { spans, lastSeq } = nextBatch(rows, cursor.seq, traced);
    if (lastSeq === cursor.seq) return false;
    if (spans.length === 0) {
      // Stored all the same: the next instance would look at these events again, and wake itself once more for that.
      await this.#moveTo({ ...cursor, seq: lastSeq });
      return true;
    }
    const { hash, post } = this.#effects;
    const request = await otlpRequest(spans, traced, { hash, version: VERSION, droppedEvents: cursor.dropped });
    const result = resultOf(await post(request));
    // The run may have been deleted meanwhile: nothing may be written for it any more.
    if (this.#host.run !== run) return false;
    const next = afterPost(cursor, lastSeq, { result, logSeq: run.readableSeq });
    const dropped = next.dropped - cursor.dropped;
    if (dropped > 0) {
      const cause = result === "failed" ? "is away" : "refused a request";
      console.error(`the collector of traces ${cause}; ${dropped} events of ${id} are dropped`);
    }
    await this.#moveTo(next);
    return result !== "failed";
  }

  async #moveTo(cursor: ExportCursor): Promise<void> {
    this.#cursor = cursor;
    await this.#host.change((run) => run.addWrite(() => this.#host.store.meta.set("exported", cursor)));
  }

  get #position(): ExportCursor {
    this.#cursor ??= this.#host.store.meta.get("exported");
    return this.#cursor;
  }
}

/** The run with its groups' traces, each of which is looked up once. */
function tracedRun(run: ExportedRun): TracedRun {
  const { id, parentId, name, createdAtMs, trace, parentTrace } = run.settings;
  const salt = groupSalt(id);
  const known = new Map<string, TraceContext | null>();
  const lookUp = (groupId: string): TraceContext | null => {
    const seq = groupSeqOfId(groupId, salt);
    const header = seq === null ? undefined : run.storedGroup(seq)?.header;
    return header?.id === groupId ? (header.trace ?? null) : null;
  };
  const traceOfGroup = (groupId: string): TraceContext | null => {
    const found = known.get(groupId);
    if (found !== undefined) return found;
    const looked = lookUp(groupId);
    known.set(groupId, looked);
    return looked;
  };
  const client = trace === undefined ? {} : { trace };
  const above = parentTrace === undefined ? {} : { parentTrace };
  const attemptIdOf: TracedRun["attemptIdOf"] = ({ group, index, callId, attempt }) => {
    // A slot's group has its number in its id. A single call that is stored as a group is slot 0 of it.
    const seq = groupSeqOfId(callId ?? group ?? "", salt);
    return `${seq === null ? callId : slotIdOf(seq, index ?? 0)}.${attempt}`;
  };
  return { id, parentId, name, createdAtMs, ...client, ...above, traceOfGroup, attemptIdOf };
}

/** Posts spans to a collector. Redirects are not followed: the headers may hold a secret. */
export async function postSpans({ url, headers, encoding }: OtlpTarget, request: OtlpRequest): Promise<number | null> {
  const isJson = encoding === "json";
  try {
    const signal = AbortSignal.timeout(OTLP_TIMEOUT_MS);
    const sent = { ...headers, "content-type": isJson ? "application/json" : "application/x-protobuf" };
    const body = isJson ? JSON.stringify(request) : otlpBytes(request);
    const answer = await fetch(url, { method: "POST", headers: sent, body, redirect: "manual", signal });
    await answer.body?.cancel();
    return answer.status;
  } catch {
    return null;
  }
}
