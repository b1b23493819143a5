/**
 * Reads a `ConfigurationRequest` as JSON and prints workerd's configuration, compressed: the gateway's process keeps it for the next
 * start of workerd. Or prints what is wrong with the source or the variables, and ends with status 1.
 */
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { workerdConfiguration } from "./configuration.ts";
import { localPlan, type LocalSetting } from "./plan.ts";

/** `dataDir`: the folder in which objects and buckets are stored. */
export type ConfigurationRequest = LocalSetting & { dataDir: string };

try {
  const request: ConfigurationRequest = JSON.parse(await text(process.stdin));
  const plan = localPlan(request);
  // workerd has no jurisdictions: it would refuse every object.
  if ((plan.vars["JURISDICTION"] ?? "") !== "") {
    throw new Error(
      "JURISDICTION holds on Cloudflare only: here all data is in one folder of this machine. Remove it.",
    );
  }
  process.stdout.write(gzipSync(await workerdConfiguration(plan, request.dataDir)));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
