/** What every stub does, whatever its language. README.md beside this file describes the rules and the drivers. */
import { describe } from "vitest";
import type { Language } from "./language.ts";
import { answers } from "./rules/answers.ts";
import { childRuns } from "./rules/child-runs.ts";
import { connections } from "./rules/connections.ts";
import { epochs } from "./rules/epochs.ts";
import { failures } from "./rules/failures.ts";
import { messages } from "./rules/messages.ts";
import { ownRun } from "./rules/own-run.ts";
import { stream } from "./rules/stream.ts";
import { systems } from "./rules/systems.ts";
import { prepare } from "./script.ts";

/** Runs every rule on the stub of a language. */
export function conformance(language: Language): void {
  describe(`the stub for ${language.name}`, () => {
    const script = prepare(language);
    answers(script);
    failures(script);
    connections(script);
    epochs(script);
    ownRun(script);
    systems(script);
    messages(script);
    describe("in child runs", () => childRuns(script));
    describe("as a stream", () => stream(script));
  });
}
