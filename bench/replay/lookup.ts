/** How long it takes to find a recorded answer among many, in the memory of a run. */
import { createHash } from "node:crypto";
import { RECORDED_ANSWERS_MAX, REPLAY_EPOCHS_MAX, REPLAY_USES_MAX } from "../../src/limits.ts";
import { recordKey } from "../../src/recordings/content.ts";
import { Tape } from "../../src/recordings/tape.ts";
import { atMost, type Part } from "../parts/row.ts";

const ANSWERS = 50_000;
const US_MAX = 50;
const BOUNDS = { answersMax: RECORDED_ANSWERS_MAX, epochsMax: REPLAY_EPOCHS_MAX, usesMax: REPLAY_USES_MAX };

export function measureLookup(): Part {
  const keys = Array.from({ length: ANSWERS }, (_, at) =>
    recordKey("up/model", createHash("sha256").update(String(at)).digest("hex")),
  );
  const tape = new Tape(BOUNDS);
  const before = process.memoryUsage().heapUsed;
  for (const [at, key] of keys.entries()) tape.add(key, { id: `s${at}`, at: `s${at}` });
  const bytes = (process.memoryUsage().heapUsed - before) / ANSWERS;
  const startedMs = performance.now();
  for (const key of keys) tape.take("epoch", key);
  const us = ((performance.now() - startedMs) * 1_000) / ANSWERS;
  const equal = new Tape(BOUNDS);
  for (let at = 0; at < ANSWERS; at++) equal.add("key", { id: `s${at}`, at: `s${at}` });
  const equalMs = performance.now();
  for (let at = 0; at < ANSWERS; at++) equal.take("epoch", "key");
  const equalUs = ((performance.now() - equalMs) * 1_000) / ANSWERS;
  return {
    rows: [
      atMost(`look-up among ${ANSWERS} answers`, us, US_MAX, " µs"),
      atMost(`look-up among ${ANSWERS} answers of one key`, equalUs, US_MAX, " µs"),
      atMost("bytes of an answer in memory, about", bytes, 400),
    ],
    faults: [],
  };
}
