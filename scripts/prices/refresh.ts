/**
 * Writes src/run/money/price-snapshot.json from the installed @pydantic/genai-prices, or from the folder of another copy of
 * that package: `node scripts/prices/refresh.ts [folder]`. Prints what the snapshot omits. Review the difference before you
 * commit it: these prices are then charged.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import type { Snapshot } from "../../src/run/money/prices.ts";
import { providersSchema, snapshotOf } from "./snapshot.ts";
import { ROOT } from "../root.ts";

const NAME = "@pydantic/genai-prices";

const folder = resolve(process.argv[2] ?? join(ROOT, "node_modules", NAME));
const manifest = z
  .object({ name: z.literal(NAME), version: z.string(), license: z.literal("MIT"), module: z.string() })
  .parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));

const library: unknown = await import(pathToFileURL(join(folder, manifest.module)).href);
// Without an update in progress it resolves with the data that the package was published with.
const { waitForUpdate } = z.object({ waitForUpdate: z.custom<() => unknown>(isFunction) }).parse(library);
const providers = providersSchema.parse(await waitForUpdate());

const source = `${NAME} ${manifest.version} (MIT, see price-snapshot.LICENSE)`;
const { snapshot, leftOut } = snapshotOf(providers, { source, date: publishedOn(manifest.version) });
const text = snapshotText(snapshot);
writeFileSync(join(ROOT, "src/run/money/price-snapshot.json"), text);
writeFileSync(join(ROOT, "src/run/money/price-snapshot.LICENSE"), readFileSync(join(folder, "LICENSE")));

console.log(`left out:\n${leftOut.join("\n")}\n`);
console.log(`${snapshot.source} of ${snapshot.date}: ${text.length} bytes`);

/** The registry knows when a version was published; the package itself does not. */
function publishedOn(version: string): string {
  const answer: unknown = JSON.parse(execFileSync("npm", ["view", NAME, "time", "--json"], { encoding: "utf8" }));
  const times = z.record(z.string(), z.iso.datetime({ offset: true })).parse(answer);
  return z.iso.date().parse(times[version]?.slice(0, 10));
}

/** One line per price, so that a diff shows what changed. */
function snapshotText({ source, date, providers }: Snapshot): string {
  const blocks = Object.entries(providers).map(([id, { hosts, unpriced, models }]) => {
    const lines = models.map((model) => `    ${JSON.stringify(model)}`);
    return [
      `  ${JSON.stringify(id)}: {"hosts":${JSON.stringify(hosts)},`,
      `   "unpriced":${JSON.stringify(unpriced)},`,
      `   "models":[\n${lines.join(",\n")}]}`,
    ].join("\n");
  });
  return `{"source":${JSON.stringify(source)},\n "date":${JSON.stringify(date)},\n "providers":{\n${blocks.join(",\n")}}}\n`;
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}
