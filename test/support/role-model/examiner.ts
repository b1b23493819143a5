/** Agents that examine a change: each has a task of its own, and none has an opinion about a change that it was not shown. */
import { asksFor, sectionOf, type Request } from "./request.ts";

/** What each kind of agent looks for, and what it finds. */
const EYES: readonly { for: RegExp; bad: RegExp; finding: string }[] = [
  {
    for: /attacker|secur/i,
    bad: /\bno limit\b|without (?:a )?(?:limit|bound)|for ever/i,
    finding: "waits have no bound",
  },
  { for: /twice/i, bad: /without (?:a )?key/i, finding: "a call may be made twice" },
  { for: /\btests?\b/i, bad: /\bat most three\b/i, finding: "no test of the third attempt" },
  { for: /cost|load/i, bad: /\bno growing wait\b/i, finding: "an outage multiplies the calls" },
  { for: /names|style|comments/i, bad: /\bfoo\b/, finding: "a name says nothing" },
];

export function examine(request: Request): string {
  const { text } = request;
  const change = sectionOf(text, "(?:The )?change") ?? /The change: (.+)/i.exec(text)?.[1] ?? null;
  const say = (verdict: string, findings: string[]): string =>
    asksFor(request, "verdict", "findings") || /Answer with JSON/.test(text)
      ? JSON.stringify({ verdict, findings })
      : `${verdict}: ${findings.join("; ")}`;
  if (change === null || change.trim() === "") return say("reject", ["I was shown no change."]);
  const task = text.replace(change, "");
  const eye = EYES.find((each) => each.for.test(task));
  if (eye === undefined) return say("reject", ["I was given no task."]);
  return eye.bad.test(change) ? say("reject", [eye.finding]) : say("accept", ["nothing found"]);
}

/** One text from many findings: it names each finding that it was given. */
export function synthesise(request: Request): string {
  const found = [...request.text.matchAll(/"findings":\s*\[([^\]]*)\]/g)].map(([, list = ""]) =>
    list.replaceAll('"', ""),
  );
  return found.length === 0 ? "I was given no findings." : `Together: ${[...new Set(found)].join("; ")}.`;
}
