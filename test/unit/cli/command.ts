/** Starts the command as a person does, in a folder of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = join(import.meta.dirname, "../../../bin/fanout.mjs");

export type Ended = { status: number | null; stdout: string; stderr: string };

type Options = {
  env?: Record<string, string>;
  stdin?: string;
  onStarted?: (child: ChildProcess) => void;
  /** Sees what was said so far on standard error, each time that something is. */
  onSaid?: (stderr: string, child: ChildProcess) => void;
};

/** Presses Ctrl-C, once, when this has been said. */
export function interruptAt(text: string): Required<Options>["onSaid"] {
  let pressed = false;
  return (said, child) => {
    if (!pressed && said.includes(text)) pressed = child.kill("SIGINT");
  };
}

export class Folder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<Folder> {
    return new Folder(await mkdtemp(join(tmpdir(), "fanout-bin-")));
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  async write(name: string, content: string | Buffer): Promise<void> {
    await writeFile(join(this.path, name), content);
  }

  async read(name: string): Promise<string> {
    return readFile(join(this.path, name), "utf8");
  }

  /** The lines of a .jsonl, parsed. */
  async lines(name: string): Promise<unknown[]> {
    const texts = (await this.read(name)).split("\n").filter((text) => text !== "");
    return texts.map((text): unknown => JSON.parse(text));
  }

  /** Runs `fanout` with these words in this folder. */
  async fanout(args: readonly string[], { env = {}, stdin, onStarted, onSaid }: Options = {}): Promise<Ended> {
    const child = spawn(process.execPath, [PROGRAM, ...args], {
      cwd: this.path,
      env: { PATH: process.env["PATH"], TMPDIR: this.path, ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    onStarted?.(child);
    const ended: Ended = { status: null, stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => void (ended.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      ended.stderr += text;
      onSaid?.(ended.stderr, child);
    });
    if (stdin !== undefined) child.stdin.end(stdin);
    return new Promise((resolve) => child.once("close", (status) => resolve({ ...ended, status })));
  }
}
