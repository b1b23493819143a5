/**
 * What an exchange costs a gate beside 5,000 runs that all wait, in processor time: at a key with a rate, and at one with a width.
 */
import { Gate } from "../../src/gate/gate.ts";
import { EMPTY_MEMORY } from "../../src/gate/memory.ts";
import type { GateReport, RateSample } from "../../src/gate/wire.ts";
import { gateReport } from "../../test/support/gate-report.ts";
import { atMost, type Part } from "../parts/row.ts";

const RUNS = 5_000;
const MICROSECONDS_MAX = 100;
/** Exchanges of each run that are measured, after one that makes it known. */
const ROUNDS = 10;
/** Time between two exchanges of the gate, ms. */
const APART_MS = 4;

type Case = { name: string; report: Partial<GateReport> };

const requests: RateSample = { ageMs: 0, requests: { limit: 480, remaining: 5, resetMs: null, windowMs: 60_000 } };
const CASES: readonly Case[] = [
  { name: "a rate", report: { samples: [requests] } },
  {
    name: "a width",
    report: {
      failures: [{ class: "rate_limited", stop: null, hintMs: null, count: 40, ageMs: 0, message: null }],
      inFlight: 20,
    },
  },
];

export function measureExchange(): Promise<Part> {
  return Promise.resolve({ rows: CASES.flatMap(measured), faults: [] });
}

function measured({ name, report }: Case): Part["rows"] {
  const gate = new Gate({ adaptive: { mode: "aimd" }, maxInFlight: 512 }, 1, EMPTY_MEMORY, 0);
  let nowMs = 0;
  let cpu = process.cpuUsage();
  gate.exchange(gateReport("r0", 1, { ...report, waiting: 100 }), nowMs);
  for (let round = 1; round <= ROUNDS + 1; round++) {
    if (round === 2) cpu = process.cpuUsage();
    for (let at = 0; at < RUNS; at++) {
      nowMs += APART_MS;
      const started = { requests: round, tokens: round * 100 };
      const sent = gateReport(`r${at}`, round + 1, {
        epoch: 1,
        waiting: 100,
        started,
        succeeded: round,
        sinceStartMs: 10,
      });
      gate.exchange(sent, nowMs);
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  const mean = (user + system) / (ROUNDS * RUNS);
  return [atMost(`an exchange at ${name}, beside ${RUNS} runs`, mean, MICROSECONDS_MAX, " µs")];
}
