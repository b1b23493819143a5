/** Types the blocks of a page into one shell, as a reader would, and tells what each printed. */
import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Block } from "./blocks.ts";
import { LANGUAGES } from "./languages.ts";

/** What a block is followed by: what was printed, or why it failed. */
export type Printed = { block: Block; out: string; err: string };

/** Longest that a page's shell may take, ms: it ends a block that hangs, and none that a busy machine makes slow. */
const SHELL_MS_MAX = 170_000;

/**
 * Runs blocks in order in one `sh`, whose variables last from one to the next; a block in another language is a program
 * of its own, which sees what the shell has exported. Throws at the first block that fails or complains.
 */
export async function runInShell(
  blocks: readonly Block[],
  { folder, env }: { folder: string; env: Record<string, string> },
): Promise<Printed[]> {
  // Programs lie in the folder, so that they find what lies there beside them.
  const notes = join(folder, ".shell");
  await mkdir(notes, { recursive: true });
  const typed = await Promise.all(
    blocks.map(async ({ language, code }, index) => {
      const program = LANGUAGES.get(language);
      if (program == null) return code;
      const file = join(folder, `block-${index}.${program.extension}`);
      await writeFile(file, code);
      return `${program.command} '${file}'`;
    }),
  );
  const script = typed.map((text, index) => {
    const note = join(notes, String(index));
    return `exec >'${note}.out' 2>'${note}.err'\necho ${index} >'${notes}/at'\n${text}`;
  });
  const status = await shell(`set -eu\n${script.join("\n")}\n`, { folder, env });
  const last = status === 0 ? blocks.length - 1 : Number(await readFile(join(notes, "at"), "utf8"));
  const printed: Printed[] = [];
  for (const [index, block] of blocks.slice(0, last + 1).entries()) {
    const [out, err] = await Promise.all([
      readFile(join(notes, `${index}.out`), "utf8"),
      readFile(join(notes, `${index}.err`), "utf8"),
    ]);
    printed.push({ block, out, err });
    const failed = index === last && status !== 0 ? `ended the shell with ${status}` : null;
    const complained = err === "" ? null : "complained";
    const why = failed ?? complained;
    if (why !== null) throw new Error(`line ${block.line}: the block ${why}:\n${block.code}\n${out}${err}`);
  }
  return printed;
}

/** The exit status of a script; of everything it has started, nothing is left. */
async function shell(
  script: string,
  { folder, env }: { folder: string; env: Record<string, string> },
): Promise<number | string> {
  const child = spawn("sh", ["-c", script], { cwd: folder, env, stdio: "ignore", detached: true });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of them have ended.
    }
  };
  const late = setTimeout(end, SHELL_MS_MAX);
  const status = await new Promise<number | string>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? signal ?? "nothing"));
  });
  clearTimeout(late);
  end();
  return status;
}
