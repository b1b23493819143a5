/** The first steps in README.md, and the answer that it shows. */

/** `expected`: texts of the answers in order; null for a call that README.md says fails. */
export type FirstMinute = { paste: string; expected: (string | null)[] };

const HEADING = "## The first minute";

/**
 * The paste: the blocks after the one with `npm start`, up to the one that sends a batch. Returns a sentence if something is
 * missing.
 */
export function firstMinuteOf(readme: string): FirstMinute | string {
  const sectionAt = readme.indexOf(`${HEADING}\n`);
  if (sectionAt === -1) return `README.md has no section "${HEADING}".`;
  const [section = ""] = readme.slice(sectionAt + HEADING.length).split(/^##+ /m);
  if (!blocksOf(readme).some((block) => /\bnpm ci\b/.test(block))) return "README.md does not contain `npm ci`.";
  const blocks = blocksOf(section);
  const startAt = blocks.findIndex((block) => /^npm start\b/m.test(block));
  if (startAt === -1) return `"${HEADING}" does not contain \`npm start\`.`;
  const askAt = blocks.findIndex((block, index) => index > startAt && block.includes("/batch"));
  if (askAt === -1) return `"${HEADING}" does not send a batch after \`npm start\`.`;
  const paste = blocks.slice(startAt + 1, askAt + 1).join("");
  const expected = expectedOf(paste);
  return expected === null ? `The batch of "${HEADING}" has no body that can be parsed.` : { paste, expected };
}

function blocksOf(text: string): string[] {
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code);
}

/** The simulated model returns each prompt; `sim/fail` fails. */
function expectedOf(paste: string): (string | null)[] | null {
  for (const [, body = ""] of paste.matchAll(/-d '(\{[^']*\})'/g)) {
    const items = itemsOf(JSON.parse(body));
    if (items === null) continue;
    return items.map((item) => {
      if (typeof item === "string") return item;
      return textOf(item, "model")?.startsWith("sim/fail") ? null : textOf(item, "prompt");
    });
  }
  return null;
}

function itemsOf(body: unknown): unknown[] | null {
  if (typeof body !== "object" || body === null) return null;
  const items = "prompts" in body ? body.prompts : "items" in body ? body.items : null;
  return Array.isArray(items) ? items : null;
}

function textOf(item: unknown, field: "model" | "prompt"): string | null {
  if (typeof item !== "object" || item === null) return null;
  const value = new Map<string, unknown>(Object.entries(item)).get(field);
  return typeof value === "string" ? value : null;
}

/** What is wrong with the output of the paste, as a sentence; null if it is the expected answer. */
export function wrongWith(printed: string, expected: FirstMinute["expected"]): string | null {
  const results = resultsIn(printed);
  const isRight =
    results !== null &&
    results.length === expected.length &&
    expected.every((text, index) => {
      const result = results[index];
      return text === null ? typeof result === "string" && result.startsWith("[error] ") : result === text;
    });
  return isRight ? null : `Expected the answers ${JSON.stringify(expected)}, got: ${printed.slice(0, 1_000)}`;
}

function resultsIn(printed: string): unknown[] | null {
  try {
    const answer: unknown = JSON.parse(printed);
    const results = typeof answer === "object" && answer !== null && "results" in answer ? answer.results : null;
    return Array.isArray(results) ? results : null;
  } catch {
    return null;
  }
}
