/** The coding agents of the guide: how a model drives each, and how each counts its tokens. */
import { z } from "zod";
import type { Calling } from "../../support/provider.ts";
import type { Tokens } from "../../support/provider-exchange.ts";

export type CodingAgent = {
  /** Its name and version in the guide. */
  name: string;
  package: string;
  /** The program, with which a block of the guide begins a line. */
  program: string;
  /** The file that the guide has it read; null = it needs none. */
  file: string | null;
  /** A call of its tool for shell commands. */
  call(command: string): Calling;
  /** The tokens that it says its session has used. */
  tokensOf(printed: string): Tokens;
  /** A limit for a session of ten turns: its bill, and the worst case of its last call. */
  limitUsd: number;
  /** Its exit status where the budget has ended; absent = 1. */
  refusedStatus?: number;
};

const calling = (name: string, values: object): Calling => ({ name, arguments: JSON.stringify(values) });

const used = z.object({ input_tokens: z.int(), output_tokens: z.int() });
const ended = z.object({ usage: used });
const step = z.object({
  type: z.string(),
  part: z.object({ tokens: z.object({ input: z.int(), output: z.int() }).optional() }).optional(),
});

const turn = z.object({
  type: z.string(),
  message: z.object({ usage: z.object({ input: z.int(), cacheRead: z.int(), output: z.int() }).optional() }).optional(),
});

const tokensIn = ({ input_tokens, output_tokens }: z.infer<typeof used>): Tokens => ({
  prompt: input_tokens,
  completion: output_tokens,
});

const linesOf = (printed: string): unknown[] =>
  printed
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line): unknown => JSON.parse(line));

export const CODING_AGENTS: readonly CodingAgent[] = [
  {
    name: "Claude Code",
    package: "@anthropic-ai/claude-code",
    program: "claude",
    file: null,
    call: (command) => calling("Bash", { command }),
    tokensOf: (printed) => tokensIn(ended.parse(JSON.parse(printed)).usage),
    limitUsd: 0.1,
  },
  {
    name: "Codex",
    package: "@openai/codex",
    program: "codex",
    file: "config.toml",
    call: (command) => calling("exec_command", { cmd: command }),
    tokensOf: (printed) => tokensIn(ended.parse(linesOf(printed).at(-1)).usage),
    limitUsd: 0.15,
  },
  {
    name: "opencode",
    package: "opencode-ai",
    program: "opencode",
    file: "opencode.json",
    call: (command) => calling("bash", { command, description: "Writes a number" }),
    tokensOf: (printed) =>
      linesOf(printed).reduce<Tokens>(
        (sum, line) => {
          const { input = 0, output = 0 } = step.parse(line).part?.tokens ?? {};
          return { prompt: sum.prompt + input, completion: sum.completion + output };
        },
        { prompt: 0, completion: 0 },
      ),
    limitUsd: 0.1,
  },
  {
    name: "Qwen Code",
    package: "@qwen-code/qwen-code",
    program: "qwen",
    file: null,
    call: (command) => calling("run_shell_command", { command, is_background: false }),
    tokensOf: (printed) => tokensIn(ended.parse(z.array(z.unknown()).parse(JSON.parse(printed)).at(-1)).usage),
    limitUsd: 0.25,
  },
  {
    name: "pi",
    package: "@mariozechner/pi-coding-agent",
    program: "pi",
    file: "models.json",
    call: (command) => calling("bash", { command }),
    tokensOf: (printed) =>
      linesOf(printed).reduce<Tokens>(
        (sum, line) => {
          const { type, message } = turn.parse(line);
          const { input = 0, cacheRead = 0, output = 0 } = (type === "turn_end" ? message?.usage : undefined) ?? {};
          return { prompt: sum.prompt + input + cacheRead, completion: sum.completion + output };
        },
        { prompt: 0, completion: 0 },
      ),
    limitUsd: 0.1,
    refusedStatus: 0,
  },
];
