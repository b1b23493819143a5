/** What a course is: several requests that follow from each other, of which each alone is allowed or refused for a known reason. */
import { z } from "zod";
import type { Random } from "../../../bench/adversary/random.ts";
import type { GatewayRequest } from "../../support/gateway.ts";
import type { Site } from "../place.ts";

/** Draws a course, sends it, and returns what was wrong with it; nothing = []. Everything is done in runs of its own. */
export type Course = (site: Site, random: Random) => Promise<string[]>;

export type CourseAnswer = { status: number; text: string; json: unknown };

/** Longest wait for one answer, ms: more than the longest wait that a course requests. */
const ANSWER_MS_MAX = 90_000;

/** A new run of a course, and a way to send requests as it. */
export async function openCourseRun({ gateway }: Site, settings: Record<string, unknown> = {}) {
  const run = await gateway.openRun({ budget: { usd: 1 }, default_model: "sim/echo", ...settings });
  const ask = (path: string, request: GatewayRequest = {}): Promise<CourseAnswer> =>
    answerTo(gateway.fetch(path, { token: run.token, signal: AbortSignal.timeout(ANSWER_MS_MAX), ...request }));
  return { ...run, ask };
}
export type CourseRun = Awaited<ReturnType<typeof openCourseRun>>;

export async function answerTo(pending: Promise<Response>): Promise<CourseAnswer> {
  const response = await pending;
  const text = await response.text();
  return { status: response.status, text, json: jsonIn(text) };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The fault of an answer that should have another status. */
export function expected(what: string, status: number, { status: got, text }: CourseAnswer): string[] {
  return got === status ? [] : [`${what} is answered ${got} instead of ${status}: ${text.slice(0, 300)}`];
}

/** The fault of an answer that is no refusal: a success, or a failure of the gateway. */
export function refusedFault(what: string, { status, text }: CourseAnswer): string[] {
  return status >= 400 && status < 500 ? [] : [`${what} is answered ${status}: ${text.slice(0, 300)}`];
}

const withId = z.looseObject({ id: z.string() });

/** The id in an answer; "" if it has none. */
export function idIn({ json }: CourseAnswer): string {
  return withId.safeParse(json).data?.id ?? "";
}

/** The elements in another order. */
export function shuffled<T>(list: readonly T[], random: Random): T[] {
  return list
    .map((value) => ({ value, at: random.fraction() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
