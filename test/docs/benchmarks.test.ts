/** docs/benchmarks.md and README's table are what their generator makes of the stored rounds; every figure of README has a command. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { CLAIMS } from "../../bench/report/claims.ts";
import { comparisonTable } from "../../bench/report/comparison.ts";
import { resultFile, textOf } from "../../bench/report/data.ts";
import { benchmarksPage } from "../../bench/report/page.ts";
import { comparisonIn } from "../../bench/report/readme.ts";
import { ROOT } from "./page.ts";

const textIn = (path: string): Promise<string> => readFile(join(ROOT, path), "utf8");
const stored = async () => resultFile.parse(JSON.parse(await textIn("docs/benchmarks.json")));

describe("docs/benchmarks.md", () => {
  it("is what its generator makes of docs/benchmarks.json, which is as it was written", async () => {
    const data = await stored();
    expect(await textIn("docs/benchmarks.md")).toBe(benchmarksPage(data));
    expect(await textIn("docs/benchmarks.json")).toBe(textOf(data));
  });

  it("says when a gateway was not measured, instead of a figure", async () => {
    const data = await stored();
    const suites = data.suites.map((suite) => ({
      ...suite,
      rounds: suite.rounds.filter(({ variant }) => !variant.startsWith("litellm")),
    }));
    const [head = [], , ...rows] = comparisonTable({ ...data, suites })
      .split("\n")
      .map((line) => line.split(" | "));
    expect(rows.length).toBeGreaterThan(5);
    for (const row of rows) expect(row[head.indexOf("LiteLLM")]).toBe("not measured");
    expect(comparisonTable(data)).not.toContain("NaN");
  });
});

describe("README.md", () => {
  it("shows the comparison of the stored rounds", async () => {
    expect(comparisonIn(await textIn("README.md"))).toBe(comparisonTable(await stored()));
  });

  it("claims what a command shows, and each command exists", async () => {
    const readme = await textIn("README.md");
    const { scripts } = z
      .looseObject({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(await textIn("package.json")));
    for (const { quote, command } of CLAIMS) {
      expect(readme, quote).toContain(quote);
      const script = /^npm run ([\w:-]+)/.exec(command)?.[1];
      const file = /\S+\.test\.ts$/.exec(command)?.[0];
      expect(script === undefined ? existsSync(join(ROOT, file ?? "")) : script in scripts, command).toBe(true);
    }
  });

  it("has no figure of speed, memory or money without such a claim", async () => {
    const readme = (await textIn("README.md")).replace(/^```.*?^```$/gms, "").replaceAll(/^\|.*$/gm, "");
    const paragraphs = readme.split(/\n\s*\n|\n- /);
    const figure = /\b(?:[\d.,]+|two|three|five|ten|twenty) ?(?:ms|seconds|minutes|MB|GB|%|×|times)(?:\W|$)/;
    const unproved = paragraphs.filter(
      (paragraph) => figure.test(paragraph) && !CLAIMS.some(({ quote }) => paragraph.includes(quote)),
    );
    expect(unproved).toEqual([]);
  });
});
