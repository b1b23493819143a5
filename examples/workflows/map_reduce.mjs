/**
 * Summarises a long text: its parts at once, then the summaries in pairs until one is left.
 *
 *     npx fanout run examples/workflows/map_reduce.mjs --budget 0.50 --args '{"parts":24}'
 */
import { readFile } from "node:fs/promises";

const BOOK = new URL("../data/opticks.txt", import.meta.url);
const PART_CHARS = 2_000;

export default async function ({ agent, parallel, phase, log, budget, args }) {
  const text = await readFile(BOOK, "utf8");
  const parts = Array.from({ length: args?.parts ?? 12 }, (_, at) =>
    text.slice(at * PART_CHARS, (at + 1) * PART_CHARS),
  );

  phase("map");
  const summaries = await parallel(
    parts.map(
      (part, at) => () => agent(`Summarise in one sentence:\n${part}`, { label: `part ${at + 1}`, max_tokens: 60 }),
    ),
  );
  let level = summaries.filter((summary) => summary !== null);
  const lost = parts.length - level.length;
  if (budget.total !== null) log(`${level.length} parts for $${budget.spent().toFixed(6)} of $${budget.total}`);

  phase("reduce");
  while (level.length > 1) {
    const pairs = level.flatMap((summary, at) => (at % 2 === 0 ? [[summary, level[at + 1]]] : []));
    const next = await Promise.all(
      pairs.map(([one, other]) => {
        if (other === undefined) return one;
        return agent(`Make one sentence of these two:\n${one}\n${other}`, { label: "merge", max_tokens: 60 });
      }),
    );
    level = next.filter((summary) => summary !== null);
  }
  return { parts: parts.length, lost, summary: level[0] ?? null };
}
