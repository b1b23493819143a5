/** Programs of somebody who has nothing but a package: run in a folder outside of the clone. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";

/** Runs a command to its end, with the folder as its home, and returns what it prints. Throws if it fails. */
export async function run(
  folder: string,
  command: string,
  args: readonly string[],
  vars: Record<string, string> = {},
): Promise<string> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder, PYTHONDONTWRITEBYTECODE: "1", ...vars };
  const child = spawn(command, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [status, printed, complaint] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${complaint}${printed}`);
  return printed;
}
