/** The fenced code blocks of a page, and what each is there for. */

import { LANGUAGES } from "./languages.ts";

/** A block as it stands in a page: `info` is what follows the language in the fence. */
export type Block = { line: number; language: string; info: string; code: string };

/** What a block says was printed by the one before it. */
export type Output = { line: number; form: "text" | "json"; code: string };

/** A block with its part in the page. */
export type Step =
  /** Typed into the page's shell, or a program that is started from it. */
  | { kind: "run"; block: Block; output: Output | null }
  /** Saved under a name; what is run later uses it. */
  | { kind: "file"; block: Block; name: string }
  /** Sent to the gateway as it is: `json POST /batch`. */
  | { kind: "request"; block: Block; method: string; path: string }
  /** What the gateway is configured with. */
  | { kind: "configuration"; block: Block; form: "env" | "toml" | "upstreams" };

const FENCE = /^```([\w+-]*)([^\n`]*)\n(.*?)^```$/gms;

/** Every block of a page. Throws where a fence could hide from the reader of this file: one that is indented, or of `~`. */
export function blocksOf(markdown: string): Block[] {
  const blocks = [...markdown.matchAll(FENCE)].map(({ 1: language = "", 2: info = "", 3: code = "", index }) => ({
    line: lineOf(markdown, index),
    language,
    info: info.trim(),
    code,
  }));
  const rest = markdown.replaceAll(FENCE, "");
  const hidden = /^[ >*-]*(```|~~~)/m.exec(rest);
  if (hidden !== null) throw new Error(`a fence that no test would find: ${rest.slice(hidden.index).split("\n")[0]}`);
  return blocks;
}

/** The steps of a page, in its order. Throws for a block of which nobody would know whether it works. */
export function stepsOf(blocks: readonly Block[]): Step[] {
  const steps: Step[] = [];
  for (const block of blocks) {
    const before = steps.at(-1);
    const output = outputOf(block);
    if (output !== null && before?.kind === "run" && before.output === null) before.output = output;
    else steps.push(stepOf(block));
  }
  for (const [index, step] of steps.entries()) {
    if (step.kind !== "file") continue;
    // Programs import by the name without its ending; compose finds its file by itself.
    const names =
      step.name === "compose.yaml" ? ["docker compose"] : [step.name, `from ${step.name.split(".")[0]} import`];
    const users = steps.slice(index + 1).filter(({ block }) => names.some((name) => block.code.includes(name)));
    if (users.length === 0) throw new Error(`line ${step.block.line}: no later block uses ${step.name}`);
  }
  return steps;
}

function outputOf({ line, language, info, code }: Block): Output | null {
  return (language === "text" || language === "json") && info === "" ? { line, form: language, code } : null;
}

function stepOf(block: Block): Step {
  const { line, language, info } = block;
  const request = /^(GET|POST|PATCH|DELETE) (\/\S*)$/.exec(info);
  if (language === "json" && request !== null) {
    return { kind: "request", block, method: request[1] ?? "", path: request[2] ?? "" };
  }
  if (language === "json" && info === "UPSTREAMS") return { kind: "configuration", block, form: "upstreams" };
  if (info === ".dev.vars" || info === ".deploy.vars") return { kind: "configuration", block, form: "env" };
  if (language === "toml" && info === "wrangler.toml") return { kind: "configuration", block, form: "toml" };
  if (/^(Dockerfile|[\w-]+\.[\w.]+)$/.test(info)) return { kind: "file", block, name: info };
  if (LANGUAGES.has(language) && info === "") return { kind: "run", block, output: null };
  throw new Error(`line ${line}: nobody runs a block of "${language} ${info}"`);
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
