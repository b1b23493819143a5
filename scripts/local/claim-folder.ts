/**
 * Claims the folder in which a gateway stores its runs. Two gateways on one folder would each have a copy of a run's budget and
 * could spend it twice.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The file with the id of the process that uses the folder. */
const FILE = "gateway.pid";

/** `wasLeft`: the gateway that used the folder before was killed, so its workerd may still be running for a moment. */
export type Claim = { release: () => void; wasLeft: boolean };

/** Claims the folder and creates it if it is missing; returns the claim, or the id of the process that uses the folder. */
export function claimFolder(folder: string): Claim | { usedBy: number } {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, FILE);
  let wasLeft = false;
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" });
      return { release: () => rmSync(file, { force: true }), wasLeft };
    } catch (error) {
      if (!isCode(error, "EEXIST")) throw error;
    }
    const owner = Number(readFileSync(file, "utf8"));
    // In a container every gateway has the same process id, so its own id is that of a gateway that was killed.
    if (owner !== process.pid && isAlive(owner)) return { usedBy: owner };
    rmSync(file, { force: true });
    wasLeft = true;
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid < 1) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // A process of another user must not be signalled, but it exists.
    return isCode(error, "EPERM");
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
