/** What is billed beside calls: Workflows, R2, waking and deleting a run, looking at runs. Each line is the price of one kind of event, from the price list. */
import { DIRECTORY_SHARDS, LIST_PAGE_MAX, SUMMARY_MS } from "../../src/limits.ts";
import { PRICE_LIST } from "./price-list.ts";

/** `basis`: why it is so many operations. */
export type Beside = { what: string; usdPerMillion: number; basis: string };

/** Rows that the metadata of a run has: settings, status, counters. A single figure for a run of few calls. */
const ROWS_OF_A_SMALL_RUN = 20;
/** Rows of a run of 10,000 calls in batches: two per call, for its slot and its part of the log. */
const ROWS_OF_A_LARGE_RUN = 20_000;

/** That of budgets per day is one more. */
const PARTS_OF_THE_LIST = DIRECTORY_SHARDS + 1;

/** USD per million of each. */
export function besideCalls(): Beside[] {
  const { workflowRequests, workflowSteps, r2Writes, r2Reads, rowsRead, rowsWritten, objectRequests } = PRICE_LIST;
  return [
    {
      what: "group executed by a Workflow instance",
      usdPerMillion: workflowRequests + workflowSteps,
      basis: "one instance with one step; its CPU time is that of a Worker",
    },
    { what: "object written to R2", usdPerMillion: r2Writes, basis: "a page of a large batch, a file, a part" },
    { what: "object read from R2", usdPerMillion: r2Reads, basis: "the same" },
    {
      what: "waking of a run of few calls",
      usdPerMillion: rowsRead * ROWS_OF_A_SMALL_RUN,
      basis: `${ROWS_OF_A_SMALL_RUN} rows read, on top of the request that wakes it`,
    },
    {
      what: "waking of a run with 10,000 stored calls, if all rows are read",
      usdPerMillion: rowsRead * ROWS_OF_A_LARGE_RUN,
      basis: `${ROWS_OF_A_LARGE_RUN} rows read at most; ended groups are not read at waking`,
    },
    {
      what: "report of a root run to the list of runs",
      usdPerMillion: objectRequests + rowsWritten,
      basis: `a request and a row: at most one per ${SUMMARY_MS / 1_000} s that a run is awake and changes, one per alarm, one at its end`,
    },
    {
      what: "look of `fanout top` at the list of runs",
      usdPerMillion: PARTS_OF_THE_LIST * (objectRequests + rowsRead * (LIST_PAGE_MAX + 1)),
      basis: `a request to each of ${PARTS_OF_THE_LIST} parts, which reads a row for each run of at most a page; none to a run`,
    },
    {
      what: "deletion of a run",
      usdPerMillion: objectRequests * 3 + rowsWritten,
      basis:
        "its alarm, its files' object and the directory; a row of the directory. Rows dropped by deleteAll are taken as free: no page says",
    },
  ];
}
