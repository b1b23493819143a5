/** The table that README shows: this gateway beside others, a row for each command. */
import { medianIn, type ResultFile } from "./data.ts";

/** A cell names the variant and the figures of it; null = the gateway has nothing of the kind. */
type Cell = { variant: string; figures: readonly string[]; baseline?: string } | null;

type Row = {
  what: string;
  suite: string;
  fanout: Cell;
  litellm: Cell;
  portkey: Cell;
  digits: number;
  /** Written before each figure. */
  unit?: string;
};

/** Latencies beyond those of no gateway. */
const added = (variant: string): Cell => ({ variant, figures: ["p50_ms@16", "p99_ms@16"], baseline: "direct" });
const one = (variant: string, ...figures: string[]): Cell => ({ variant, figures });

const ROWS: readonly Row[] = [
  {
    what: "latency added to a call of 20 ms, 16 clients: p50 / p99 ms",
    suite: "added",
    fanout: added("chat"),
    litellm: added("litellm"),
    portkey: added("portkey"),
    digits: 1,
  },
  {
    what: "most requests per second with a p99 of at most 50 ms",
    suite: "throughput",
    fanout: one("chat", "rps@p99<=50"),
    litellm: one("litellm", "rps@p99<=50"),
    portkey: one("portkey", "rps@p99<=50"),
    digits: 0,
  },
  {
    what: "1,000 calls of 200 ms, 512 at once: seconds until all answers",
    suite: "fan-out",
    fanout: one("batch", "wall_ms@512"),
    litellm: one("litellm", "wall_ms@512"),
    portkey: one("portkey", "wall_ms@512"),
    digits: 2,
  },
  {
    what: "16 streams: chunks per second",
    suite: "stream",
    fanout: one("native", "chunks_per_s@16"),
    litellm: one("litellm", "chunks_per_s@16"),
    portkey: one("portkey", "chunks_per_s@16"),
    digits: 0,
  },
  {
    what: "resident memory after the load of the first row, MB",
    suite: "added",
    fanout: one("chat", "loaded_mb"),
    litellm: one("litellm", "loaded_mb"),
    portkey: one("portkey", "loaded_mb"),
    digits: 0,
  },
  {
    what: "a budget of $0.05 under 1,000 calls, 64 at once / all at once: the provider's bill",
    suite: "overshoot",
    fanout: one("chat", "bill_usd@64", "bill_usd@1000"),
    litellm: one("litellm", "bill_usd@64", "bill_usd@1000"),
    portkey: null,
    digits: 3,
    unit: "$",
  },
  {
    what: "600 calls on a key with 100 calls a second: 429s per answered call",
    suite: "rate-limit",
    fanout: one("batch", "wasted"),
    litellm: one("litellm", "wasted"),
    portkey: one("portkey", "wasted"),
    digits: 2,
  },
  {
    what: "400 questions on one document: the bill ÷ the least possible",
    suite: "document",
    fanout: one("fanout", "bill_ratio"),
    litellm: one("litellm", "bill_ratio"),
    portkey: null,
    digits: 2,
  },
  {
    what: "1,000 calls run again / again after a restart: calls paid again",
    suite: "rerun",
    fanout: one("fanout", "again", "restarted"),
    litellm: one("litellm-disk", "again", "restarted"),
    portkey: null,
    digits: 0,
  },
];

/** The command that measures a suite. */
export function commandOf(suite: string): string {
  return `npm run bench -- --peers ${suite}`;
}

/** The table as Markdown, without a line break at its end. */
export function comparisonTable(data: ResultFile): string {
  const shown = (row: Row, cell: Cell): string => {
    if (cell === null) return "not measured";
    const figures = cell.figures.map((figure) => {
      const beyond = cell.baseline === undefined ? 0 : medianIn(data, row.suite, cell.baseline, figure);
      const value =
        (medianIn(data, row.suite, cell.variant, figure) - beyond) / (figure.startsWith("wall_ms") ? 1_000 : 1);
      return Number.isNaN(value) ? "–" : `${row.unit ?? ""}${grouped(value.toFixed(row.digits))}`;
    });
    return figures.every((figure) => figure === "–") ? "not measured" : figures.join(" / ");
  };
  const rows = ROWS.map((row) => {
    const cells = [row.fanout, row.litellm, row.portkey].map((cell) => shown(row, cell));
    return `| ${row.what} | ${cells.join(" | ")} | \`${row.suite}\` |`;
  });
  return ["| | fanout | LiteLLM | Portkey | suite |", "|---|---:|---:|---:|---|", ...rows].join("\n");
}

/** Thousands with commas. */
function grouped(digits: string): string {
  return digits.replace(/^-?\d+/, (whole) => whole.replaceAll(/\B(?=(\d{3})+$)/g, ","));
}
