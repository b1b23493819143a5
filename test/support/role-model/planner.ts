/** The planner, its steps and its joiner: it plans only functions that it is offered, and a step needs its function's name. */
import { valueOf } from "./arithmetic.ts";
import { asksFor, sectionOf, type Request } from "./request.ts";

/** Heights in metres: what a search finds. */
export const HEIGHTS: Readonly<Record<string, number>> = { "Tokyo Tower": 333, "Eiffel Tower": 330, Shard: 310 };

/** What a search for a text finds. */
export function search(query: string): string {
  const place = Object.keys(HEIGHTS).find((name) => query.includes(name));
  return place === undefined ? `nothing about ${query}` : `${HEIGHTS[place]}`;
}

/** Functions that a request offers: a list with a line such as `- search(query): …`. */
function offered(text: string): string[] {
  return [...text.matchAll(/^- (\w+)\(/gm)].map(([, name = ""]) => name);
}

/** A plan in LLMCompiler's notation, or why there is none. */
export function plan({ text, prompt }: Request): string {
  const functions = offered(text);
  if (functions.length === 0) return "I was offered no functions.";
  const places = Object.keys(HEIGHTS).filter((name) => prompt.includes(name));
  if (!functions.includes("search") || places.length === 0) return "No function that I was offered finds this.";
  const lines = places.map((place, at) => `${at + 1}. search("height of the ${place} in metres")`);
  const next = places.length + 1;
  if (functions.includes("math") && places.length > 1) lines.push(`${next}. math("$1 - $2")`);
  if (functions.includes("math") && places.length > 2) lines.push(`${next + 1}. math("max($1, $2) > $3")`);
  return [...lines, `${lines.length + 1}. join()`].join("\n");
}

/** The same plan with a task a line, as JSON: for a planner whose tasks start while it writes. */
export function planLines({ text }: Request): string {
  const functions = offered(text);
  if (functions.length === 0) return "I was offered no functions.";
  const goal = sectionOf(text, "Goal") ?? "";
  const places = Object.keys(HEIGHTS).filter((name) => goal.includes(name));
  if (!functions.includes("search") || places.length === 0) return "No function that I was offered finds this.";
  const steps: [tool: string, input: object][] = places.map((place) => [
    "search",
    { query: `height of the ${place} in metres` },
  ]);
  if (functions.includes("math") && places.length > 1)
    steps.push(["math", { expression: "{{t1.output}} - {{t2.output}}" }]);
  if (functions.includes("math") && places.length > 2)
    steps.push(["math", { expression: "max({{t1.output}}, {{t2.output}}) > {{t3.output}}" }]);
  return steps.map(([tool, input], at) => `${JSON.stringify({ id: `t${at + 1}`, tool, input })}\n`).join("");
}

/** One task for each file of a goal. A goal without files is one task. */
export function planTasks({ text }: Request): string {
  const goal = sectionOf(text, "Goal") ?? "";
  const tools = offered(text);
  if (tools.includes("search") && Object.keys(HEIGHTS).some((name) => goal.includes(name))) {
    const places = Object.keys(HEIGHTS).filter((name) => goal.includes(name));
    const searches = places.map((name, at) => ({
      id: `t${at + 1}`,
      tool: "search",
      input: { query: name },
      dependencies: [],
    }));
    return JSON.stringify({ tasks: searches });
  }
  const files = [...goal.matchAll(/[\w./-]+\.(?:py|md|ts)\b/g)].map(([name]) => name);
  const actions =
    files.length === 0 ? [`review ${goal}`] : [...new Set(files)].map((file) => `${actionFor(goal, file)} ${file}`);
  return JSON.stringify({ tasks: actions.map((prompt, at) => ({ id: `t${at + 1}`, prompt, dependencies: [] })) });
}

function actionFor(goal: string, file: string): string {
  if (file.endsWith(".md")) return "docs";
  return /\btests?\b/i.test(goal) ? "test" : "review";
}

/** A step that the plan's notation names: `math(333 - 330)`, `search(height of …)`. */
export function step({ prompt }: Request): string | null {
  const called = /^(\w+)\((.*)\)$/s.exec(prompt.trim());
  if (called === null) return null;
  const [, name = "", written = ""] = called;
  const argument = written.trim().replace(/^"(.*)"$/s, "$1");
  if (name === "search") return search(argument);
  if (name !== "math") return `I know no function ${name}.`;
  const value = valueOf(argument);
  return value === null ? `I cannot compute ${argument}` : String(value);
}

/** What a step without its function's name is answered. */
export function nameless({ prompt }: Request): string | null {
  return valueOf(prompt) === null ? null : `What am I to do with ${prompt.trim()}?`;
}

/** Reads the results of the steps, and answers from them only. */
export function join(request: Request): string {
  const listed = sectionOf(request.text, "Results") ?? sectionOf(request.text, "Outputs") ?? "";
  const results = listed.split("\n").filter((line) => /\S/.test(line));
  const say = (action: "finish" | "replan", answer: string, reason: string): string =>
    asksFor(request, "action")
      ? JSON.stringify({ action, answer, reason })
      : `${action === "finish" ? "ANSWER" : "REPLAN"}: ${answer || reason}`;
  if (results.length === 0) return say("replan", "", "I was given no results.");
  const lost = results.find((line) => /nothing about|I cannot|What am I|I know no|! \w+|no output/.test(line));
  if (lost !== undefined) return say("replan", "", `this result says nothing: ${lost.trim()}`);
  const values = results.map((line) => line.replace(/^.*= /, "").trim());
  const difference = values.find((value, at) => /^-?\d+(\.\d+)?$/.test(value) && /math/.test(results[at] ?? ""));
  if (difference === undefined) return say("finish", `The results are ${values.join(", ")}.`, "");
  const isTaller = values.includes("true") ? "; at least one is taller than the third" : "";
  return say("finish", `The first is ${difference} m taller than the second${isTaller}.`, "");
}
