/** Faults: an upstream that turns away three calls in ten. Nothing of that may reach the batch's owner. */
import { audit } from "./audit.ts";
import { timed, upload, writeInput } from "./batch.ts";
import { exact, plain, type Part } from "../parts/row.ts";
import { startWorld, statsOf } from "./world.ts";

const TURN_AWAY = 0.3;
const WIDTH = 64;
const LATENCY_MS = 20;
const LINE_BYTES = 400;
/** An upstream that rejects calls gets fewer of them: a batch may take its time. */
const BATCH_MS_MAX = 600_000;

export async function measureFaults(lines: number, report: (text: string) => void): Promise<Part> {
  await using world = await startWorld({ latencyMs: LATENCY_MS, turnAway: TURN_AWAY });
  await using input = await writeInput(lines, LINE_BYTES);
  const run = await world.openRun(WIDTH);
  const { batch, wallMs } = await timed(run, await upload(run, input), BATCH_MS_MAX);
  const { output, error, faults } = await audit(run, batch, lines);
  const { requests, turnedAway, answered } = await statsOf(world.provider);
  report(`faults: ${lines} lines in ${wallMs.toFixed(0)} ms, ${turnedAway} of ${requests} calls turned away`);
  const share = ((turnedAway / requests) * 100).toFixed(1);
  const rows = [
    exact("429: lines in the output file", String(output), `= ${lines}`, output === lines),
    exact("429: lines in the error file", String(error), "= 0", error === 0),
    exact("429: faults in the files", String(faults.length), "= 0", faults.length === 0),
    exact("429: calls that were answered", String(answered), `= ${lines}`, answered === lines),
    plain("429: calls in all, and turned away", `${requests}, ${share} %`),
    plain("429: from create to completed", `${(wallMs / 1_000).toFixed(1)} s`),
  ];
  return { rows, faults };
}
