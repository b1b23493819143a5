/**
 * The plans that LLMCompiler's planner writes: `1. search("…")`, with `$1` for the output of step 1, `join()` as the last step,
 * and `<END_OF_PLAN>`. A step becomes a task with its number as the id, its arguments as the prompt, and its function as the phase.
 */
import { PlanLines, type LineContent } from "./lines.ts";

/** A step of a plan. */
export type PlanStep = { id: string; phase: string; prompt: string };

const END_MARK = "<END_OF_PLAN>";
/** A step with all that follows its opening bracket. */
const STEP = /^(\d{1,9})[.)]\s*([A-Za-z_]\w{0,63})\((.*)$/s;
const JOIN = /^(?:\d{1,9}[.)]\s*)?join\(/;
/** What models write between steps. */
const REMARK = /^(?:thought:|plan:|###|```|#)/i;

export function llmCompilerLines(): PlanLines<PlanStep> {
  return new PlanLines<PlanStep>(readLine);
}

function readLine(line: string): LineContent<PlanStep> {
  const text = line.trim();
  if (text === END_MARK || JOIN.test(text)) return { kind: "end" };
  if (text === "" || REMARK.test(text)) return { kind: "nothing" };
  const step = STEP.exec(text.endsWith(END_MARK) ? text.slice(0, -END_MARK.length).trimEnd() : text);
  if (step === null) return bad('expected a step such as 1. search("…")');
  const [, id = "", phase = "", rest = ""] = step;
  const read = argumentsOf(rest);
  if (read === null) return bad('the arguments are not complete; expected 1. search("…") on one line');
  if (read.after.trim() !== "" && !read.after.trim().startsWith("#")) return bad("has text after its step");
  if (read.texts.length === 0) return bad("has no arguments, which are its prompt");
  return { kind: "task", task: { id, phase, prompt: read.texts.join("\n") } };
}

function bad(message: string): LineContent<PlanStep> {
  return { kind: "bad", message };
}

/** One argument up to its comma: quoted texts, with escapes, and anything else but brackets that belong to the step. */
const PIECE = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^"'()[\]{},]+|[()[\]{},]/gsy;

/** The arguments of a step, and what follows its closing bracket; null if it is not closed. */
function argumentsOf(rest: string): { texts: string[]; after: string } | null {
  const texts: string[] = [];
  let pieces: string[] = [];
  let depth = 0;
  PIECE.lastIndex = 0;
  for (;;) {
    const piece = PIECE.exec(rest)?.[0];
    if (piece === undefined) return null;
    const closes = depth === 0 && piece === ")";
    if (closes || (depth === 0 && piece === ",")) {
      const text = textOf(pieces);
      if (text !== "") texts.push(text);
      pieces = [];
      if (closes) return { texts, after: rest.slice(PIECE.lastIndex) };
      continue;
    }
    if ("([{".includes(piece)) depth += 1;
    else if (")]}".includes(piece)) depth -= 1;
    pieces.push(piece);
  }
}

/** An argument that is one quoted text is that text; any other is as it was written. */
function textOf(pieces: readonly string[]): string {
  const [first = "", ...others] = pieces.filter((piece) => piece.trim() !== "");
  const isQuoted = others.length === 0 && /^["']/.test(first);
  return isQuoted ? unescaped(first.slice(1, -1)) : pieces.join("").trim();
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, character: string) => ESCAPES[character] ?? character);
}
