/**
 * `npm run bench:deploy [-- COMMIT]`: does the gateway answer while a deploy has replaced only a part of it? Plays a session of
 * all ways in with the Workers of COMMIT on the objects of this checkout, and the reverse. Without COMMIT: of the commit that
 * the recorded wire of the tests is of. Exit status 1 if a request fails. README.md explains it.
 */
import { readFileSync } from "node:fs";
import { presentVersion, startGateway } from "../test/support/gateway.ts";
import { commitOf, versionOf } from "../test/support/wire/checkout.ts";
import { playSession } from "../test/support/wire/session.ts";
import { tableOf } from "./table.ts";

const recorded = readFileSync(new URL("../test/support/fixtures/wire.jsonl", import.meta.url), "utf8");
const [header = "{}"] = recorded.split("\n", 1);
const { commit: released }: { commit: string } = JSON.parse(header);
const [name = released] = process.argv.slice(2);

const commit = commitOf(name);
const old = await versionOf(commit, { isRecorded: false });
const present = await presentVersion();
const cases = [
  { workers: commit, objects: "this checkout", script: old, served: present },
  { workers: "this checkout", objects: commit, script: present, served: old },
];
const rows: Record<string, string>[] = [];
for (const { workers, objects, script, served } of cases) {
  const gateway = await startGateway({ script, objects: served });
  const failure = await playSession(gateway).then(
    () => null,
    (error: unknown) => String(error),
  );
  await gateway.stop();
  rows.push({ workers, objects, session: failure === null ? "answered" : `FAILED: ${failure}` });
}
console.log(tableOf(rows));
process.exitCode = rows.every(({ session }) => session === "answered") ? 0 : 1;
