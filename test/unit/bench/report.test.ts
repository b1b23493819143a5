/** What the page of benchmarks says of result files: with a gateway that failed, and who is ahead of whom. */
import { describe, expect, it } from "vitest";
import { comparisonTable, standingOf, standings } from "../../../bench/report/comparison.ts";
import { failuresOf, medianIn, resultFile, textOf, type ResultFile } from "../../../bench/report/data.ts";
import { benchmarksPage } from "../../../bench/report/page.ts";

const gateways: ResultFile["gateways"] = [
  { variant: "envoy", title: "Envoy", version: "1.0.0", budget: "none", about: "a relay" },
  { variant: "smg", title: "smg", version: "2.0.0", budget: "none", about: "a relay, too" },
];

function dataOf(rounds: ResultFile["suites"][number]["rounds"]): ResultFile {
  const suite = { name: "added", title: "added", about: "What is added.", table: [{ gateway: "Envoy" }], rounds };
  const head = { machine: { cpu: "a processor", cores: 2 }, versions: {}, gateways, quick: false, rounds: 1 };
  return { at: "2026-01-01T00:00:00.000Z", ...head, suites: [suite] };
}

const measured = (variant: string, p50: number) => ({
  round: 1,
  variant,
  at: 0,
  figures: { "p50_ms@16": p50, "p99_ms@16": p50 * 2, "cpu_s@64": p50 / 10 },
});
const failed = { round: 1, variant: "smg", at: 0, figures: {}, failed: "it did `not` start | at all" };

describe("a result file with a peer that failed", () => {
  const data = dataOf([measured("direct", 20), measured("chat", 24), measured("envoy", 21), failed]);

  it("is read as it was written", () => {
    expect(resultFile.parse(JSON.parse(textOf(data)))).toEqual(data);
  });

  it("has no figure of the peer, and its reason once", () => {
    expect(medianIn(data, "added", "smg", "p50_ms@16")).toBeNaN();
    const twice = [...(data.suites[0]?.rounds ?? []), { ...failed, round: 2, failed: "again" }];
    expect([...failuresOf(twice)]).toEqual([["smg", failed.failed]]);
    expect(medianIn(dataOf([failed, measured("smg", 22)]), "added", "smg", "p50_ms@16")).toBe(22);
  });

  it("says so in the comparison, and in its suite with the reason", () => {
    const [, , latency = ""] = comparisonTable(data).split("\n");
    expect(latency).toContain("| 4.0 / 8.0 | 1.0 / 2.0 | failed |");
    const page = benchmarksPage(data);
    expect(page).toContain("- `smg` was not measured: it did not start at all");
    expect(page).toContain("Envoy and smg relay without a ledger.");
  });
});

describe("standings", () => {
  it("are level within a twentieth, and otherwise ahead or behind by what is better", () => {
    expect(standingOf(100, 105, "less")).toBe("level");
    expect(standingOf(100, 106, "less")).toBe("ahead");
    expect(standingOf(100, 106, "more")).toBe("behind");
    expect(standingOf(0, 0, "less")).toBe("level");
    expect(standingOf(0, 0.3, "less")).toBe("ahead");
  });

  it("name whom a figure is ahead of and behind whom, from the figures alone", () => {
    const lines = standings(
      dataOf([measured("direct", 20), measured("chat", 24), measured("envoy", 21), measured("smg", 30)]),
    );
    expect(lines[0]).toBe(
      "**ms added to a call of 20 ms, 16 clients, p50** (less is better): fanout has 4.0; ahead of smg (10.0); behind Envoy (1.0).",
    );
    expect(lines.find((line) => line.includes("processor"))).toContain("ahead of smg (3.00); behind Envoy (2.10)");
  });

  it("compare a bill only beyond its budget", () => {
    const spent = (variant: string, usd: number) => ({ round: 1, variant, at: 0, figures: { "bill_usd@64": usd } });
    const data = dataOf([]);
    const rounds = [spent("chat", 0.049), spent("envoy", 0.04), spent("smg", 0.06)];
    const suites = data.suites.map((suite) => ({ ...suite, name: "overshoot", rounds }));
    expect(standings({ ...data, suites })).toEqual([
      "**what a provider bills beyond a budget of $0.05, 64 at once** (less is better): fanout has $0.000; ahead of smg ($0.010); level with Envoy ($0.000).",
    ]);
  });

  it("compare early refusals only with another hard budget: a soft one has none because it overspends", () => {
    const short = (variant: string, calls: number) => ({ round: 1, variant, at: 0, figures: { "short@64": calls } });
    const data = dataOf([]);
    const rounds = [short("chat", 1), short("envoy", 0), short("smg", 5)];
    const suites = data.suites.map((suite) => ({ ...suite, name: "overshoot", rounds }));
    const both = gateways.map(
      (gateway) => ({ ...gateway, budget: gateway.title === "smg" ? "hard" : "soft" }) as const,
    );
    expect(standings({ ...data, suites, gateways: both })).toEqual([
      "**calls refused although the money sufficed, 64 at once** (less is better): fanout has 1; ahead of smg (5).",
    ]);
  });

  it("leave out what was not measured", () => {
    expect(standings(dataOf([measured("direct", 20), measured("chat", 24), failed]))).toEqual([]);
  });
});
