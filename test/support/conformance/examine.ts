/** Examines a gateway with schemathesis: requests made from /openapi.json, right and wrong ones, and each answer held against it. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { PACKAGES } from "../python-packages.ts";
import { startPlace } from "./place.ts";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** What was sent, and what schemathesis prints: faults with the requests that show them. */
export type Examined = { ok: boolean; report: string };

/** `examples`: random requests per operation, beside those that cover each keyword of its schema. The same seed makes the same requests. */
export async function examine({ seed, examples }: { seed: number; examples: number }): Promise<Examined> {
  const { gateway, place } = await startPlace();
  const scratchDir = await mkdtemp(join(tmpdir(), "fanout-conformance-"));
  try {
    const child = spawn(
      "python3",
      [
        // As a module: pip writes no program into a folder `bin` that another installation has made.
        ...["-m", "schemathesis.cli"],
        ...["--config-file", join(FOLDER, "schemathesis.toml"), "--no-color", "run", `${place.url}/openapi.json`],
        // One worker: CPython's parser fails when threads of a program use it at once, and the seed is for one.
        ...["--seed", String(seed), "--max-examples", String(examples), "--workers", "1"],
      ],
      {
        cwd: scratchDir,
        env: {
          PATH: process.env["PATH"] ?? "",
          PYTHONPATH: `${PACKAGES}:${FOLDER}`,
          PYTHONDONTWRITEBYTECODE: "1",
          FANOUT_PLACE: JSON.stringify(place),
        },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    const [printed, complaint, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { ok: status === 0, report: printed + complaint };
  } finally {
    await gateway.stop();
    await rm(scratchDir, { recursive: true, force: true });
  }
}
