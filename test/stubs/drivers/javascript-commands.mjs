/** The commands of a driver over stubs/javascript/fanout.mjs, for every runtime that it runs on. */

/** The records that a command writes, as the stub `fanout` gives them. */
export async function* recordsOf(fanout, [command, ...args]) {
  try {
    for await (const record of answered(fanout, command, args)) yield `${record}\u001e`;
  } catch (error) {
    if (!(error instanceof fanout.FanoutError)) throw error;
    yield `\u0015${error.code}\u001f${error.status ?? ""}\u001f${error.retryable}\u001e`;
  }
}

async function* answered(fanout, command, args) {
  const [first, second, third] = args;
  switch (command) {
    case "query":
      return yield await fanout.llmQuery(first, second === undefined ? undefined : { model: second });
    case "batch":
      return yield* await fanout.llmQueryBatch(args);
    case "batch-model":
      return yield* await fanout.llmQueryBatch(args.slice(1), { model: first });
    case "stream":
      for await (const { index, result } of fanout.llmStream(args)) yield `${index}\u001f${result}`;
      return;
    case "budget":
      return yield (await fanout.llmBudget()).usd.remaining;
    case "usage":
      return yield (await fanout.llmUsage()).llm_calls;
    case "final":
      await fanout.FINAL(first);
      return yield "ok";
    case "log":
      await fanout.llmLog(first, { [second]: third });
      return yield "ok";
    case "tool":
      return yield await fanout.toolCall(first, { [second]: third });
    default:
      throw new Error(`no command ${command}`);
  }
}
