/**
 * `node bench/report/write.ts [result.json]`: writes docs/benchmarks.json, docs/benchmarks.md and the table in README from a result
 * file of `npm run bench`; without one, the page and the table again from docs/benchmarks.json.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../scripts/root.ts";
import { comparisonTable } from "./comparison.ts";
import { resultFile, textOf, type ResultFile } from "./data.ts";
import { benchmarksPage } from "./page.ts";
import { withComparison } from "./readme.ts";

const DATA_FILE = join(ROOT, "docs/benchmarks.json");

export function writePages(data: ResultFile): void {
  // The page shows what the file says, digit by digit.
  const text = textOf(data);
  const stored = resultFile.parse(JSON.parse(text));
  writeFileSync(DATA_FILE, text);
  writeFileSync(join(ROOT, "docs/benchmarks.md"), benchmarksPage(stored));
  const readme = join(ROOT, "README.md");
  writeFileSync(readme, withComparison(readFileSync(readme, "utf8"), comparisonTable(stored)));
}

if (import.meta.main) writePages(resultFile.parse(JSON.parse(readFileSync(process.argv[2] ?? DATA_FILE, "utf8"))));
