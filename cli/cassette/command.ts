/** `fanout cassette`: tapes of recorded answers. Each of its commands is a row. */
import { Failure } from "../failure.ts";
import { printable } from "../text/printable.ts";
import { diff } from "./diff.ts";
import { record, replay } from "./program.ts";
import { clear, exported, load, ls, show } from "./tapes.ts";
import type { Command, Surroundings } from "../command.ts";

const USAGE = `Usage: fanout cassette COMMAND [options]

  record FILE [options] -- PROGRAM…   empty the tape, run the program at an upstream that records, save the tape as FILE
  replay FILE [options] -- PROGRAM…   load FILE, and run the program at an upstream that replays: nothing is sent
  ls                                  list the tapes that the gateway's upstreams name
  show TAPE [NUMBER]                  list what is on a tape, or show one request with its answer
  diff A B                            compare two tapes, each a file or a name: which requests only one of them has
  export TAPE [-o FILE]               save a tape as a file, one exchange per line; - is standard output
  load FILE TAPE                      replace a tape by a file
  clear TAPE                          empty a tape

TAPE is the name that an upstream of the kind cassette has in UPSTREAMS. All commands need the operator's key, but a diff of two files.

Of record and replay:
  --upstream NAME   which upstream, if several record or replay
  --model M         model of calls that name none
  --budget USD      most that the program may spend; record needs it. A replay is charged as it was recorded
The program gets FANOUT_URL and FANOUT_TOKEN, and the same as OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL and
ANTHROPIC_API_KEY. It does not get ADMIN_KEY. Exit status: the program's; 1 if a replayed program asked what is not on the tape.

Of all: --json for machines; --url URL, --token-file FILE and --env-file FILE, as fanout --help says
`;

const COMMANDS: Record<string, Command> = { record, replay, ls, show, diff, export: exported, load, clear };

export async function cassette(args: string[], surroundings: Surroundings): Promise<number> {
  const [name, ...rest] = args;
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  if (name === undefined || name === "help" || own.includes("--help") || own.includes("-h")) {
    surroundings.stdout(USAGE);
    return name === undefined ? 1 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command !== undefined) return await command(rest, surroundings);
  throw new Failure(`Unknown command: cassette ${printable(name)}. For help, run: fanout cassette --help`);
}
