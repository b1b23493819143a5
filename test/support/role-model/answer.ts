/**
 * A model with roles, which reads what it is sent. Its answers depend on nothing else: a reviewer without the text of a file
 * says so, a planner without functions plans none, a member of a team that is not asked again says nothing. So a program
 * that sends too little gets useless answers, as it would from a real model. An echo would hide that.
 */
import type { UpstreamAnswer, UpstreamCall } from "../upstream.ts";
import { review, work } from "./coder.ts";
import { examine, synthesise } from "./examiner.ts";
import { join, nameless, plan, planLines, planTasks, step } from "./planner.ts";
import { asksFor, requestOf, type Request } from "./request.ts";
import { judge, member } from "./team.ts";

/** The model's text for a request. */
export function roleAnswer(call: Pick<UpstreamCall, "body" | "prompt">): string {
  const request = requestOf(call);
  return roleOf(request)(request);
}

/** The handler of an upstream: see startUpstream. */
export function roleModel(call: UpstreamCall): UpstreamAnswer {
  return saying(call, roleAnswer(call));
}

/** An answer that says a text, line by line where its request asks for a stream. */
export function saying({ body }: Pick<UpstreamCall, "body">, text: string): UpstreamAnswer {
  return body["stream"] === true ? { pieces: text.split(/(?<=\n)/) } : { text };
}

const ACTIONS = /\b(review|security|audit|refactor|implement|test|docs|search|analyze|research|performance)\b/i;

/** Which role a request is for, by what it says. */
function roleOf(request: Request): (request: Request) => string {
  const { text, prompt } = request;
  if (asksFor(request, "tasks")) return planTasks;
  if (asksFor(request, "action", "answer") || /^Answer the question from the results/m.test(text)) return join;
  if (/\b(review|check) (?:this|the) edit\b/i.test(text)) return review;
  if (asksFor(request, "edits")) return (each) => work(each, actionOf(each));
  if (/\bjudge\b/i.test(text)) return judge;
  if (/\byou (?:lead|look|say|find|check|argue|read)\b/i.test(text) || asksFor(request, "confidence")) return member;
  if (/^Write one task a line, as JSON/m.test(text)) return planLines;
  if (/\bwrite a plan\b/i.test(text)) return plan;
  if (/\b(?:combine|synthesi[sz]e)\b/i.test(text)) return synthesise;
  if (/the change:|^#+ (?:the )?change\b|\bAnswer with JSON\b/im.test(text)) return examine;
  return (each) =>
    step(each) ?? nameless(each) ?? (ACTIONS.test(prompt) ? work(each, actionOf(each)) : "I do not know what to do.");
}

function actionOf({ prompt, text }: Request): string {
  return (ACTIONS.exec(prompt) ?? ACTIONS.exec(text))?.[1]?.toLowerCase() ?? "review";
}
