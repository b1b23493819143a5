/** Reads a gateway's streams: lines, server-sent events, and groups that are polled. */
import { expect } from "vitest";
import { z } from "zod";
import type { GatewayRequest } from "../support/gateway.ts";
import type { Answer, RunAccess } from "./world.ts";

/** A header that makes a group outlive the request that opened it. */
export const ASYNC = { prefer: "respond-async" };

const running = z.looseObject({ id: z.string(), object: z.literal("group"), status: z.string(), count: z.int() });

/** Opens a group and leaves it to itself. */
export async function openGroup(
  run: RunAccess,
  json: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<{ id: string; at: string }> {
  const answer = await run.send("/batch", { json, headers: { ...headers, ...ASYNC } });
  expect([answer.status, answer.text]).toEqual([202, expect.any(String)]);
  const { id } = running.parse(answer.json);
  return { id, at: `/groups/${id}` };
}

/** Waits until a group has ended, and reads it. */
export function endOf(run: RunAccess, at: string): Promise<Answer> {
  return run.send(`${at}?wait_ms=60000`);
}

const line = z.looseObject({
  seq: z.int(),
  ts: z.iso.datetime(),
  run_id: z.string(),
  parent_run_id: z.string().nullable(),
  parallel_group_id: z.string().nullable(),
  depth: z.int(),
  step: z.int().nullable(),
  event_type: z.string(),
});

/** One event of a run's log. */
export type LogLine = z.infer<typeof line>;

export function lineOf(json: string): LogLine {
  return line.parse(JSON.parse(json));
}

/** The log of a run, as its own client reads it. */
export async function logOf(run: RunAccess, query = ""): Promise<LogLine[]> {
  const answer = await run.send(`/runs/${run.id}/log${query}`);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/x-ndjson; charset=utf-8"]);
  return answer.text.split("\n").slice(0, -1).map(lineOf);
}

/** The numbers of a log without a gap: `from`, `from + 1`, … */
export function numbered(count: number, from = 1): number[] {
  return Array.from({ length: count }, (_, index) => from + index);
}

/** One server-sent event; a comment has neither id nor type. */
export type Frame = { id: string | null; type: string | null; data: string; comment: string | null };

/** The frames of a stream as they arrive. Ending the loop leaves the stream. */
export async function* framesOf(response: Response): AsyncGenerator<Frame> {
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) yield frameOf(frame);
  }
  expect(text).toBe("");
}

function frameOf(text: string): Frame {
  const fields = new Map(text.split("\n").map((field) => [field.slice(0, field.indexOf(":")), field] as const));
  const value = (name: string): string | null => fields.get(name)?.slice(name.length + 2) ?? null;
  return { id: value("id"), type: value("event"), data: value("data") ?? "", comment: value("") };
}

/** The events of a run's stream; its frames must be what its lines say. */
export async function* eventsOf(response: Response): AsyncGenerator<LogLine> {
  for await (const { id, type, data, comment } of framesOf(response)) {
    if (comment !== null) continue;
    const event = lineOf(data);
    expect([id, type]).toEqual([String(event.seq), event.event_type]);
    yield event;
  }
}

/** The request of a stream of a run's events. */
export function following(run: RunAccess, headers: Record<string, string> = {}): GatewayRequest {
  return { token: run.token, headers };
}
