/** Followers of a run's events, as clients are: a server-sent stream that is read as it comes, and resumed. */
import { exports } from "cloudflare:workers";
import { expect } from "vitest";
import { linesOf, type LogLine } from "./objects-log.ts";
import { ADMIN_KEY } from "./object-vars.ts";
import type { TestRun } from "./objects-run.ts";

const FRAME = /^id: (\d+)\nevent: (\S+)\ndata: (.*)$/;

/** One connection to a run's event stream. What it has been sent is in `lines`. */
export class StreamFollower {
  readonly lines: LogLine[] = [];
  /** True once the stream has ended by itself. */
  ended = false;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  private constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
    void this.#read().catch(() => undefined);
  }

  /** Connects as the operator; with `after`, as a browser does that reconnects. */
  static async connect(run: TestRun, after?: number): Promise<StreamFollower> {
    const response = await exports.default.fetch(`http://fanout.test/runs/${run.id}/events`, {
      headers: {
        authorization: `Bearer ${ADMIN_KEY}`,
        ...(after === undefined ? {} : { "last-event-id": String(after) }),
      },
    });
    expect(response.status).toBe(200);
    if (response.body === null) throw new Error("the event stream has no body");
    return new StreamFollower(response.body);
  }

  /** Number of the last event that came; 0 = none. */
  get last(): number {
    return this.lines.at(-1)?.seq ?? 0;
  }

  /** Waits until an event of this type has come, `count` times. */
  async until(type: string, count = 1): Promise<void> {
    const seen = (): number => this.lines.filter(({ event_type }) => event_type === type).length;
    await expect.poll(seen, { interval: 10 }).toBeGreaterThanOrEqual(count);
  }

  /** Waits until the stream has ended by itself. */
  async untilEnded(): Promise<void> {
    await expect.poll(() => this.ended, { interval: 10 }).toBe(true);
  }

  async disconnect(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) if (!frame.startsWith(":")) this.lines.push(lineOf(frame));
    }
    this.ended = true;
  }
}

/** The event of a frame. Its id and its name must be those of the line. */
function lineOf(frame: string): LogLine {
  const [, id, type, json = ""] = FRAME.exec(frame) ?? [];
  const line = linesOf(json)[0];
  if (line === undefined || String(line.seq) !== id || line.event_type !== type) {
    throw new Error(`not the frame of an event: ${frame}`);
  }
  return line;
}
