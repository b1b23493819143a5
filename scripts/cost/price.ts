/** What a million calls cost on Cloudflare, from the counted operations of one. */
import type { Bound } from "../../test/objects/cost/counted.ts";
import { PRICE_LIST } from "./price-list.ts";

/** USD per million calls, by what they pay for. */
export type Priced = {
  workerRequests: number;
  workerCpu: number;
  objectRequests: number;
  objectSeconds: number;
  rows: number;
  storage: number;
};

const BYTES_PER_GB = 1e9;
const DAYS_PER_MONTH = 30;

/** Operations per call are millions per million calls, so each is multiplied with the price of a million. */
export function priced(call: Bound): Priced {
  const requests = call.requests + call.alarms + call.messages / PRICE_LIST.messagesPerRequest;
  const storedGbMonths = (call.storedBytes * 1e6) / BYTES_PER_GB / DAYS_PER_MONTH;
  return {
    workerRequests: PRICE_LIST.workerRequests / call.callsPerRequest,
    workerCpu: PRICE_LIST.workerCpuMs * call.workerCpuMs,
    objectRequests: PRICE_LIST.objectRequests * requests,
    objectSeconds: PRICE_LIST.objectGbSeconds * PRICE_LIST.objectGb * call.awakeS,
    rows: PRICE_LIST.rowsWritten * call.rows,
    storage: PRICE_LIST.storedGbMonths * storedGbMonths,
  };
}

/** USD per million calls in all. */
export function totalOf(priced: Priced): number {
  return Object.values(priced).reduce((sum, usd) => sum + usd, 0);
}
