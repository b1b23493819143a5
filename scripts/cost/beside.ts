/** What is billed beside calls: Workflows, R2, waking and deleting a run. Each line is the price of one kind of event, from the price list. */
import { PRICE_LIST } from "./price-list.ts";

/** `basis`: why it is so many operations. */
export type Beside = { what: string; usdPerMillion: number; basis: string };

/** Rows that the metadata of a run has: settings, status, counters. A single figure for a run of few calls. */
const ROWS_OF_A_SMALL_RUN = 20;
/** Rows of a run of 10,000 calls in batches: two per call, for its slot and its part of the log. */
const ROWS_OF_A_LARGE_RUN = 20_000;

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
      what: "deletion of a run",
      usdPerMillion: objectRequests * 3 + rowsWritten,
      basis:
        "its alarm, its files' object and the directory; a row of the directory. Rows dropped by deleteAll are taken as free: no page says",
    },
  ];
}
