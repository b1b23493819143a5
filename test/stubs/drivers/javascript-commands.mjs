/** The commands of a driver over stubs/javascript/fanout.mjs, for every runtime that it runs on. */

const SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

const TOOLS = [{ type: "function", function: { name: "double", parameters: SCHEMA } }];
const MUST = { tools: TOOLS, params: { tool_choice: "required" } };
const nameOf = ({ tool_calls: [call] }) => call.function.name;

async function message({ llmMessage }, model, prompt) {
  const asked = await llmMessage(prompt, model, MUST);
  const result = { role: "tool", tool_call_id: asked.tool_calls[0].id, content: "8" };
  const messages = [{ role: "user", content: prompt }, asked, result, { role: "user", content: "done" }];
  return `${nameOf(asked)}\u001f${(await llmMessage(messages, model)).content}`;
}

/** Runs a command on the stub `fanout`. `write` receives each record. */
export async function drive(fanout, [command, ...args], write) {
  try {
    await run(fanout, { command, args, write: (text) => write(`${text}\u001e`) });
  } catch (error) {
    if (!(error instanceof fanout.FanoutError)) throw error;
    const { code, status, retryable, attempts, chargedUsd } = error;
    await write(`\u0015${[code, status ?? "", retryable, attempts ?? "", chargedUsd ?? ""].join("\u001f")}\u001e`);
  }
}

async function run(fanout, { command, args, write }) {
  const [first, second, third] = args;
  switch (command) {
    case "query":
      return write(await fanout.llmQuery(first, second));
    case "batch":
      return writeAll(await fanout.llmQueryBatch(args), write);
    case "batch-model":
      return writeAll(await fanout.llmQueryBatch(args.slice(1), first), write);
    case "stream":
      for await (const { index, result } of fanout.llmStream(args)) await write(`${index}\u001f${result}`);
      return;
    case "json":
      return write((await fanout.llmQuery(first, { schema: SCHEMA })).n);
    case "batch-json":
      return writeAll(
        (await fanout.llmQueryBatch(args, { schema: SCHEMA })).map((value) => value.n ?? value),
        write,
      );
    case "message":
      return write(await message(fanout, first, second));
    case "messages":
      return writeAll((await fanout.llmQueryBatch(args.slice(1), first, MUST)).map(nameOf), write);
    case "agent":
      return write((await fanout.llmMessage(third, first, { tools: [second], max_turns: 4 })).content);
    case "dag": {
      const tasks = [
        { id: "a", prompt: first },
        { id: "b", prompt: "{{a.output}} and two" },
      ];
      return write((await fanout.llmDag(tasks)).outputs.b);
    }
    case "vote": {
      const { winner, votes } = await fanout.llmVote(second, Number(first));
      return write(`${winner}\u001f${votes}`);
    }
    case "budget":
      return write((await fanout.llmBudget()).usd.remaining);
    case "usage":
      return write((await fanout.llmUsage()).llm_calls);
    case "final":
      await fanout.FINAL(first);
      return write("ok");
    case "log":
      await fanout.llmLog(first, { [second]: third });
      return write("ok");
    case "tool":
      return write(await fanout.toolCall(first, { [second]: third }));
    case "child":
      return fanout.withRun({ calls: Number(first) }, async ({ llmQuery }) => {
        for (const prompt of args.slice(1)) await write(await llmQuery(prompt));
      });
    case "nested":
      await fanout.withRun({ calls: 4 }, async (child) => {
        await write(await child.llmQuery(first));
        await child.withRun({ calls: 1 }, async (grandchild) => write(await grandchild.llmQuery(first)));
        await write(await child.llmQuery(first));
      });
      return write(await fanout.llmQuery(first));
    case "children": {
      const queries = args.map((prompt) => fanout.withRun({ calls: 1 }, ({ llmQuery }) => llmQuery(prompt)));
      return writeAll(await Promise.all(queries), write);
    }
    default:
      throw new Error(`no command ${command}`);
  }
}

async function writeAll(records, write) {
  for (const record of records) await write(record);
}
