/** Drives stubs/pyodide/fanout_pyodide.py for the conformance test, in the Pyodide in FANOUT_RUNTIMES. */
import { writeSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const COMMANDS = `
import asyncio
import sys
import fanout_pyodide as fanout

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

TOOLS = [{"type": "function", "function": {"name": "double", "parameters": SCHEMA}}]
MUST = {"tool_choice": "required"}

def name_of(message):
    return message["tool_calls"][0]["function"]["name"]

async def message(model, prompt):
    asked = await fanout.llm_message(prompt, model, TOOLS, params=MUST)
    call_id = asked["tool_calls"][0]["id"]
    messages = [
        {"role": "user", "content": prompt},
        asked,
        {"role": "tool", "tool_call_id": call_id, "content": "8"},
        {"role": "user", "content": "done"},
    ]
    answer = await fanout.llm_message(messages, model)
    return name_of(asked) + "\\x1f" + answer["content"]

async def query_in_child(prompt):
    async with fanout.with_run(calls=1):
        return await fanout.llm_query(prompt)

async def main(write, command, *args):
    if command == "query":
        write(await fanout.llm_query(*args))
    elif command == "batch":
        for result in await fanout.llm_query_batch(list(args)):
            write(result)
    elif command == "batch-model":
        for result in await fanout.llm_query_batch(list(args[1:]), args[0]):
            write(result)
    elif command == "stream":
        async for event in fanout.llm_stream(list(args)):
            if event["type"] == "slot":
                write("{}\\x1f{}".format(event["index"], event["result"]))
    elif command == "json":
        write(str((await fanout.llm_query(args[0], schema=SCHEMA))["n"]))
    elif command == "batch-json":
        for value in await fanout.llm_query_batch(args, schema=SCHEMA):
            write(value if isinstance(value, str) else str(value["n"]))
    elif command == "message":
        write(await message(*args))
    elif command == "messages":
        prompts = list(args[1:])
        for answer in await fanout.llm_query_batch(prompts, args[0], TOOLS, params=MUST):
            write(name_of(answer))
    elif command == "agent":
        model, tool, prompt = args
        answer = await fanout.llm_message(prompt, model, [tool], max_turns=4)
        write(answer["content"])
    elif command == "dag":
        second = {"id": "b", "prompt": "{{a.output}} and two"}
        graph = await fanout.llm_dag([{"id": "a", "prompt": args[0]}, second])
        write(graph["outputs"]["b"])
    elif command == "vote":
        vote = await fanout.llm_vote(args[1], int(args[0]))
        write("{}\\x1f{}".format(vote["winner"], vote["votes"]))
    elif command == "budget":
        write(str((await fanout.llm_budget())["usd"]["remaining"]))
    elif command == "usage":
        write(str((await fanout.llm_usage())["llm_calls"]))
    elif command == "final":
        await fanout.FINAL(args[0])
        write("ok")
    elif command == "log":
        await fanout.llm_log(args[0], **{args[1]: args[2]})
        write("ok")
    elif command == "tool":
        write(await fanout.tool_call(args[0], **{args[1]: args[2]}))
    elif command == "child":
        async with fanout.with_run(calls=int(args[0])):
            for prompt in args[1:]:
                write(await fanout.llm_query(prompt))
    elif command == "nested":
        async with fanout.with_run(calls=4):
            write(await fanout.llm_query(args[0]))
            async with fanout.with_run(calls=1):
                write(await fanout.llm_query(args[0]))
            write(await fanout.llm_query(args[0]))
        write(await fanout.llm_query(args[0]))
    elif command == "children":
        for answer in await asyncio.gather(*map(query_in_child, args)):
            write(answer)
    else:
        raise SystemExit("no command " + command)

async def drive(write, *args):
    try:
        await main(write, *args)
    except fanout.FanoutError as e:
        facts = [e.code, e.status, str(e.retryable).lower(), e.attempts, e.charged_usd]
        write("\\x15" + "\\x1f".join("" if fact is None else str(fact) for fact in facts))
drive
`;

// With only a folder it writes a snapshot of the started Pyodide there: from that, it starts in a fifth of the time.
const [folder = "", stub, ...args] = process.argv.slice(2);
const snapshot = join(folder, "pyodide.snapshot");
const installed = createRequire(join(process.env.FANOUT_RUNTIMES ?? "/", "node_modules/"));
const { loadPyodide } = await import(pathToFileURL(installed.resolve("pyodide/pyodide.mjs")).href);
if (stub === undefined) {
  const pyodide = await loadPyodide({ _makeSnapshot: true });
  await writeFile(snapshot, pyodide.makeMemorySnapshot());
} else {
  await run(await loadPyodide({ _loadSnapshot: await readFile(snapshot) }), await readFile(stub));
}
// Connections that fetch keeps alive would keep the process running. Writes to a pipe are complete by now.
process.exit(0);

async function run(pyodide, source) {
  pyodide.FS.writeFile("/home/pyodide/fanout_pyodide.py", source);
  const variables = Object.entries(process.env).filter(([name]) => /^(FANOUT|GATEWAY)_/.test(name));
  pyodide.globals.set("variables", pyodide.toPy(Object.fromEntries(variables)));
  pyodide.runPython("import os, sys; os.environ.update(variables); sys.path.insert(0, '/home/pyodide')");
  const drive = pyodide.runPython(COMMANDS);
  await drive((record) => void writeSync(1, `${record}\u001e`), ...args);
}
