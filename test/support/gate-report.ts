/** Reports of runs to gates, as plain as they can be. */
import type { ClassDemand, GateReport, WorkClass } from "../../src/gate/wire.ts";

const NOTHING: ClassDemand = { waiting: 0, tokensPerCall: 0 };

/** A report of a run with nothing but what is given; `waiting` is of its class. */
export function gateReport(
  run: string,
  number: number,
  {
    waiting = 0,
    workClass = "standard",
    ...fields
  }: Partial<GateReport> & { waiting?: number; workClass?: WorkClass } = {},
): GateReport {
  return {
    run,
    instance: "1",
    number,
    epoch: 0,
    weight: 1,
    classes: { interactive: NOTHING, standard: NOTHING, batch: NOTHING, [workClass]: { waiting, tokensPerCall: 100 } },
    inFlight: 0,
    permits: 0,
    started: { requests: 0, tokens: 0 },
    succeeded: 0,
    latency: null,
    samples: [],
    failures: [],
    recovered: false,
    ...fields,
  };
}
