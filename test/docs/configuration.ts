/** Starts a gateway with a page's configuration and opens a run; a wrong configuration refuses that. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { unstable_readConfig } from "wrangler";
import { startGateway } from "../support/gateway.ts";
import type { Step } from "./blocks.ts";

export async function acceptConfiguration({ block, form }: Step & { kind: "configuration" }): Promise<void> {
  const vars = await varsOf(block.code, form);
  const secrets = [...JSON.stringify(vars).matchAll(/secret:(\w+)/g)].map(([, name = ""]) => [name, secretOf(name)]);
  const gateway = await startGateway({ vars: { ...Object.fromEntries(secrets), ...vars } });
  try {
    await gateway.openRun({ budget: { usd: 0.01 } });
  } catch (error) {
    throw new Error(`line ${block.line}: the gateway refuses this configuration`, { cause: error });
  } finally {
    await gateway.stop();
  }
}

/** A secret of the form that its name says. */
function secretOf(name: string): string {
  if (name.startsWith("AWS_")) return "AKIAEXAMPLE:a-secret-key";
  if (!name.endsWith("SERVICE_ACCOUNT")) return "sk-a-key";
  return JSON.stringify({ client_email: "run@project.example", private_key: "-----BEGIN PRIVATE KEY-----" });
}

async function varsOf(code: string, form: "env" | "toml" | "upstreams"): Promise<Record<string, unknown>> {
  if (form === "upstreams") return { UPSTREAMS: JSON.parse(code) };
  // Pages show only the beginning of a secret.
  if (form === "env") return parseEnv(code.replaceAll("…", "a-key"));
  const folder = await mkdtemp(join(tmpdir(), "fanout-toml-"));
  try {
    const config = join(folder, "wrangler.toml");
    await writeFile(config, code);
    return unstable_readConfig({ config }, { hideWarnings: true }).vars;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
