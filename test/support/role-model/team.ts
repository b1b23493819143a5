/** Members of a team and their judge. A member answers from the file that it was given, and only if it is asked to answer. */
import { asksFor, sectionOf, type Request } from "./request.ts";

const RETRY = /^.*\b(?:for attempt in|while)\b.*$/m;

/** A member's answer; in a later round only if the request asks it again. */
export function member(request: Request): string {
  const { text, files } = request;
  const isLater = /partners said|own answer/i.test(text);
  if (isLater && !/\banswer (?:the question )?(?:again|once more)\b/i.test(text)) return "";
  const [file] = files;
  if (file === undefined) return say(request, "I was given no file, so I cannot tell.", "", 0.1);
  const loop = RETRY.exec(file.text);
  if (loop === null) return say(request, "There is no loop in what I was given.", `${file.path}:1`, 0.3);
  const line = file.text.slice(0, loop.index).split("\n").length;
  const isKeyed = /idempotency[-_]key/i.test(file.text);
  const answer = isKeyed
    ? "It is safe: each try carries the same idempotency key."
    : "It is not safe: no try carries an idempotency key.";
  return say(request, answer, `${file.path}:${line}`, isLater ? 0.9 : 0.7);
}

function say(request: Request, answer: string, evidence: string, confidence: number): string {
  if (asksFor(request, "answer", "evidence", "confidence")) return JSON.stringify({ answer, evidence, confidence });
  // A form that was asked for in words is kept, too; else there is none.
  if (!/EVIDENCE/.test(request.text)) return answer;
  return `${answer}\nEVIDENCE: ${evidence || "none"}\nCONFIDENCE: ${confidence}`;
}

/** A judge reads the answers by its rubric. */
export function judge(request: Request): string {
  const { text } = request;
  const rubric = sectionOf(text, "(?:Rubric|Criteria)") || (/rubric:\s*(\S.*)/i.exec(text)?.[1] ?? null);
  const decide = (verdict: string, confidence: number, explanation: string): string =>
    asksFor(request, "verdict") ? JSON.stringify({ verdict, confidence, explanation }) : `${verdict}: ${explanation}`;
  if (rubric === null) return decide("untrusted", 0, "I was given no rubric.");
  const stances = [...text.matchAll(/It is (not safe|safe)\b/g)].map(([, stance]) => stance);
  if (stances.length === 0) return decide("untrusted", 0.1, "No answer says anything.");
  const safe = stances.filter((stance) => stance === "safe").length;
  const share = Math.max(safe, stances.length - safe) / stances.length;
  const isCited = /\w+\.\w+:\d+/.test(text);
  if (share === 1 && isCited) return decide("trusted", 0.95, `All ${stances.length} answers agree, with evidence.`);
  return decide("partial", 0.5, isCited ? "The answers disagree." : "No answer has evidence.");
}
