/**
 * `npm run record-wire -- COMMIT`: records what the Workers of a commit send to their objects and what these reply, for
 * test/objects/old-worker.test.ts.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startGateway } from "../gateway.ts";
import { commitOf, versionOf } from "./checkout.ts";
import type { RecordedCall } from "./recording.ts";
import { playSession } from "./session.ts";

const OUT = fileURLToPath(new URL("../fixtures/wire.jsonl", import.meta.url));

/** Whether a call shows something that those before it do not: reads are the same each time. */
function isNew(): (call: RecordedCall) => boolean {
  const seen = new Set<string>();
  return ({ object, method }) => {
    const isRead = ["budget", "newest", "figures", "logPage"].includes(method);
    const isKnown = isRead && seen.has(`${object.binding}.${method}`);
    seen.add(`${object.binding}.${method}`);
    return !isKnown;
  };
}

const [name = "HEAD"] = process.argv.slice(2);
const commit = commitOf(name);
const recordedAtMs = Date.now();
const gateway = await startGateway({ script: await versionOf(commit, { isRecorded: true }) });
try {
  await playSession(gateway);
  const calls = (await (await gateway.fetch("/__wire")).json()) as RecordedCall[];
  const kept = calls.filter(isNew());
  writeFileSync(OUT, `${[{ commit, recordedAtMs }, ...kept].map((line) => JSON.stringify(line)).join("\n")}\n`);
  console.log(`${kept.length} of ${calls.length} calls of ${commit} in ${OUT}`);
} finally {
  await gateway.stop();
}
