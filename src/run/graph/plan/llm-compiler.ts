/**
 * The plans that LLMCompiler's planner writes: `1. search("…")`, with `$1` for the output of step 1, `join()` as the last step,
 * and `<END_OF_PLAN>`. A step becomes a task with its number as the id and its function as the phase: a call of the run's tool of that name, with
 * the arguments as its input; or else a call of a model, which is told the function's name and its arguments as they were written.
 */
import { PlanLines, type LineContent } from "./lines.ts";

/** A step of a plan. */
export type PlanStep = { id: string; phase: string } & ({ prompt: string } | { tool: string; input: unknown });

/** A tool that steps may call. The properties of its `parameters` name its arguments in their order. */
export type PlanTool = { name: string; parameters?: Readonly<Record<string, unknown>> | undefined };

const END_MARK = "<END_OF_PLAN>";
/** A step with all that follows its opening bracket. */
const STEP = /^(\d{1,9})[.)]\s*([A-Za-z_]\w{0,63})\((.*)$/s;
const JOIN = /^(?:\d{1,9}[.)]\s*)?join\(/;
/** What models write between steps. */
const REMARK = /^(?:thought:|plan:|###|```|#)/i;

export function llmCompilerLines(tools: readonly PlanTool[]): PlanLines<PlanStep> {
  return new PlanLines<PlanStep>((line) => readLine(line, tools));
}

function readLine(line: string, tools: readonly PlanTool[]): LineContent<PlanStep> {
  const text = line.trim();
  if (text === END_MARK || JOIN.test(text)) return { kind: "end" };
  if (text === "" || REMARK.test(text)) return { kind: "nothing" };
  const step = STEP.exec(text.endsWith(END_MARK) ? text.slice(0, -END_MARK.length).trimEnd() : text);
  if (step === null) return bad('expected a step such as 1. search("…")');
  const [, id = "", phase = "", rest = ""] = step;
  const read = argumentsOf(rest);
  if (read === null) return bad('the arguments are not complete; expected 1. search("…") on one line');
  if (read.after.trim() !== "" && !read.after.trim().startsWith("#")) return bad("has text after its step");
  const tool = tools.find(({ name }) => name === phase);
  if (tool === undefined) return { kind: "task", task: { id, phase, prompt: `${phase}(${read.written})` } };
  const input = inputOf(tool, read.values);
  return input === null
    ? bad(`has ${read.values.length} arguments, and the tool ${phase} has fewer parameters`)
    : { kind: "task", task: { id, phase, tool: phase, input } };
}

/** The input of a tool that is called with these arguments; null if it has no parameters for all of them. */
function inputOf({ parameters }: PlanTool, values: readonly unknown[]): Record<string, unknown> | null {
  const properties = parameters?.["properties"];
  if (typeof properties !== "object" || properties === null) return { args: [...values] };
  const names = Object.keys(properties);
  return values.length > names.length
    ? null
    : Object.fromEntries(values.map((value, index) => [names[index] ?? "", value]));
}

function bad(message: string): LineContent<PlanStep> {
  return { kind: "bad", message };
}

/** One argument up to its comma: quoted texts, with escapes, and anything else but brackets that belong to the step. */
const PIECE = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^"'()[\]{},]+|[()[\]{},]/gsy;

/** The arguments of a step, as values and as they were written, and what follows its closing bracket; null if it is not closed. */
function argumentsOf(rest: string): { values: unknown[]; written: string; after: string } | null {
  const values: unknown[] = [];
  let pieces: string[] = [];
  let depth = 0;
  PIECE.lastIndex = 0;
  for (;;) {
    const piece = PIECE.exec(rest)?.[0];
    if (piece === undefined) return null;
    const closes = depth === 0 && piece === ")";
    if (closes || (depth === 0 && piece === ",")) {
      const isEmpty = pieces.every((each) => each.trim() === "");
      if (!isEmpty) values.push(valueOf(pieces));
      pieces = [];
      const end = PIECE.lastIndex;
      if (closes) return { values, written: rest.slice(0, end - 1).trim(), after: rest.slice(end) };
      continue;
    }
    if ("([{".includes(piece)) depth += 1;
    else if (")]}".includes(piece)) depth -= 1;
    pieces.push(piece);
  }
}

/** An argument that is one quoted text is that text, and one that is JSON is its value; any other is as it was written. */
function valueOf(pieces: readonly string[]): unknown {
  const [first = "", ...others] = pieces.filter((piece) => piece.trim() !== "");
  if (others.length === 0 && /^["']/.test(first)) return unescaped(first.slice(1, -1));
  const written = pieces.join("").trim();
  const constant = PYTHON_CONSTANTS[written];
  if (constant !== undefined) return constant;
  try {
    return JSON.parse(written);
  } catch {
    return written;
  }
}

const PYTHON_CONSTANTS: Readonly<Record<string, boolean>> = { True: true, False: false };

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (_, character: string) => ESCAPES[character] ?? character);
}
