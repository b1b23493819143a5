/** What stubs say of a batch that its budget has kept narrow: the reason and the remedy, on standard error, on each way to a batch. */
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython } from "../support/python.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { ROOT } from "./language.ts";

reportLeftOut("batches that a budget narrows in Python's stubs", hasPython ? null : "python3");

const NARROWED = {
  by: "budget",
  dimension: "usd",
  width: 6,
  of: 64,
  share: 0.9,
  per_call: 0.001,
  remedy: "set max_tokens",
};
const SAID = "fanout: the budget let 6 of 64 calls run at once. To run more, set max_tokens.\n";

/** A gateway whose batches have one answer, and metrics that the program chooses by its token. */
const server = createServer((request, response) => {
  const token = request.headers.authorization;
  const metrics = { wall_ms: 1, ...(token === "Bearer wide" ? {} : { narrowed_by: NARROWED }) };
  const status = token === "Bearer spent" ? "partial" : "completed";
  request.resume().once("end", () => {
    if (request.headers.accept?.includes("ndjson") !== true) {
      const item = { index: 0, result: "one" };
      return response.end(JSON.stringify({ results: ["one"], errors: [null], items: [item], status, metrics }));
    }
    response.write(`${JSON.stringify({ type: "slot", index: 0, result: "one", error: null })}\n`);
    response.end(`${JSON.stringify({ type: "group_completed", status, metrics })}\n`);
  });
});

beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

type Program = { name: string; command: string; args: (code: string) => string[]; ways: Record<string, string> };

const CONTEXT = `"ctx_${"0".repeat(32)}"`;
const MODULE = join(ROOT, "stubs/javascript/fanout.mjs");
const asyncio = (code: string): string =>
  `import asyncio\nfrom fanout_async import *\nasync def main():\n  ${code}\nasyncio.run(main())`;

const PYTHON: Program[] = [
  {
    name: "Python",
    command: "python3",
    args: (code) => ["-c", `from fanout import *\n${code}`],
    ways: {
      batch: `print(llm_query_batch(["p"])[0])`,
      stream: `print([e for e in llm_stream(["p"])][0]["result"])`,
      map: `print(llm_map(${CONTEXT}, "{{chunk}}")[0])`,
    },
  },
  {
    name: "Python with asyncio",
    command: "python3",
    args: (code) => ["-c", asyncio(code)],
    ways: {
      batch: `print((await llm_query_batch(["p"]))[0])`,
      stream: `print([e async for e in llm_stream(["p"])][0]["result"])`,
      map: `print((await llm_map(${CONTEXT}, "{{chunk}}"))[0])`,
    },
  },
];

const JAVASCRIPT: Program = {
  name: "JavaScript",
  command: process.execPath,
  args: (code) => ["--input-type=module", "-e", `const f = await import(${JSON.stringify(MODULE)});\n${code}`],
  ways: {
    batch: `console.log((await f.llmQueryBatch(["p"]))[0]);`,
    stream: `for await (const { result } of f.llmStream(["p"])) console.log(result);`,
    map: `console.log((await f.llmMap(${CONTEXT}, "{{chunk}}"))[0]);`,
  },
};

/** What a program writes. */
function ran(program: Program, code: string, token: string): Promise<{ stdout: string; stderr: string }> {
  const { port } = server.address() as AddressInfo;
  const path = ["stubs/python", "stubs/python-async"].map((folder) => join(ROOT, folder)).join(":");
  const env = { ...process.env, PYTHONPATH: path, FANOUT_URL: `http://127.0.0.1:${port}`, FANOUT_TOKEN: token };
  return new Promise((resolve, reject) => {
    execFile(program.command, program.args(code), { env }, (error, stdout, stderr) => {
      if (error === null) resolve({ stdout, stderr });
      else reject(new Error(stderr));
    });
  });
}

describe.each([...(hasPython ? PYTHON : []), JAVASCRIPT])("$name", (program) => {
  it.each(Object.entries(program.ways))("says why a batch was narrow, and what helps: %s", async (_, code) => {
    expect(await ran(program, code, "narrow")).toEqual({ stdout: "one\n", stderr: SAID });
  });

  it.each(Object.entries(program.ways))("says nothing of a batch that was not: %s", async (_, code) => {
    expect(await ran(program, code, "wide")).toEqual({ stdout: "one\n", stderr: "" });
  });

  it.each(Object.entries(program.ways))(
    "leaves it to the errors where the budget did not last: %s",
    async (_, code) => {
      expect(await ran(program, code, "spent")).toEqual({ stdout: "one\n", stderr: "" });
    },
  );
});
