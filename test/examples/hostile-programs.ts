/** Programs that try to spend more than their run has, or to find the token of it. */

/** What a program tries, and the statements that try it. `BIG` is a prompt that costs a tenth of a cent; `look` remembers what it sees. */
export const ATTACKS: readonly { name: string; code: string }[] = [
  { name: "calls in a loop until it is refused", code: `for (;;) look(await llm.query({ prompt: BIG }));` },
  {
    name: "calls in a loop that no refusal ends",
    code: `for (;;) await llm.query({ prompt: BIG }).catch((error) => look(error));`,
  },
  {
    name: "calls a hundred times at once",
    code: `look(await Promise.allSettled(Array.from({ length: 100 }, () => llm.query({ prompt: BIG }))));`,
  },
  { name: "sends a batch far above its budget", code: `look(await llm.batch({ prompts: Array(400).fill(BIG) }));` },
  {
    name: "starts batches and waits for none",
    code: `for (let count = 0; count < 10; count++) void llm.batch({ prompts: Array(50).fill(BIG) }).catch(() => {});
           await llm.budget();`,
  },
  {
    name: "streams, and leaves at the first event",
    code: `const reader = (await llm.stream({ prompts: Array(200).fill(BIG) })).getReader();
           look(new TextDecoder().decode((await reader.read()).value));
           await reader.cancel();`,
  },
  {
    name: "opens a child with more money than it has",
    code: `const child = await llm.child({ budget: { usd: 100 } });
           for (;;) await child.query({ prompt: BIG });`,
  },
  {
    name: "opens many children with nearly all of its money",
    code: `const opened = await Promise.allSettled(Array.from({ length: 10 }, () => llm.child({ budget: { usd: 0.09 } })));
           for (const { value, reason } of opened) {
             look(reason);
             if (value) look(await value.batch({ prompts: Array(60).fill(BIG) }).catch((error) => error));
           }`,
  },
  {
    name: "opens children of children",
    code: `let at = llm;
           for (;;) { at = await at.child({}); void at.batch({ prompts: Array(30).fill(BIG) }).catch(() => {}); }`,
  },
  {
    name: "sends a graph far above its budget",
    code: `look(await llm.dag({ tasks: Array.from({ length: 200 }, (_, at) => ({ id: "t" + at, prompt: BIG })) }));`,
  },
  {
    name: "asks for answers without an end, or of none",
    code: `for (const max_tokens of [1e9, 0, -1, 1.5, "9", null])
             look(await llm.query({ prompt: BIG, max_tokens }).catch((error) => error));`,
  },
  {
    name: "hides what it asks for among the provider's fields",
    code: `for (const params of [{ n: 1000 }, { max_tokens: 1e9 }, { model: "dear" }, { tools: [{ type: "web_search" }] }])
             look(await llm.query({ prompt: BIG, params }).catch((error) => error));`,
  },
  {
    name: "writes headers into an option",
    code: `for (const idempotency_key of ["a\\r\\nx-fanout-run: run_b", "a\\nauthorization: Bearer fo-run-a.b.c", {}, ["a"]])
             look(await llm.query({ prompt: "a" }, { idempotency_key }).catch((error) => error));
           look(await llm.query({ prompt: "a" }, { authorization: "Bearer x", run: "fo-run-a.b.c" }).catch((error) => error));`,
  },
  {
    name: "forges props in what it sends",
    code: `const props = { run: "fo-run-a.b.c" };
           for (const call of [{ prompt: "a", props }, { prompt: "a", run: props.run }, { prompt: "a", ctx: { props } }])
             look(await llm.query(call).catch((error) => error));
           look(await llm.child({ props, token: props.run }).catch((error) => error));`,
  },
  {
    name: "calls methods with another this",
    code: `const self = { ctx: { props: { run: "fo-run-a.b.c" } }, env: {} };
           for (const how of [() => llm.query.call(self, { prompt: "a" }), () => llm.query.apply(self, [{ prompt: "a" }]),
             () => llm.budget.bind(self)(), () => Reflect.apply(llm.budget, self, [])]) {
             try { look(await how()); } catch (error) { look(error); }
           }`,
  },
  {
    name: "makes a binding of its own",
    code: `for (const how of [() => new llm.constructor(), () => llm.constructor.call(llm, { props: { run: "x" } }),
             () => llm({ props: { run: "x" } }), () => Object.create(Object.getPrototypeOf(llm)).budget(),
             () => new platform.WorkerEntrypoint({ props: { run: "x" } }, {}), () => structuredClone(llm)]) {
             try { look(await how()); } catch (error) { look(error); }
           }`,
  },
  {
    name: "reads every property of its binding",
    code: `for (const name of ["ctx", "env", "props", "run", "token", "#token", "constructor", "__proto__", "prototype", "toJSON",
             "then", "exports", "stack", "dup", "valueOf"]) {
             try { look(await llm[name]); } catch (error) { look(error); }
             try { look(await llm[name]()); } catch (error) { look(error); }
             try { look(await llm.query[name]); } catch (error) { look(error); }
           }`,
  },
  {
    name: "reads its environment and its exports",
    code: `look(platform.env); look(platform.exports); look(globalThis);
           look(await platform.withEnv({ llm: { run: "x" } }, () => platform.env));`,
  },
  {
    name: "looks for a network",
    code: `for (const how of [() => fetch("http://127.0.0.1/runs"), () => fetch("https://fanout.invalid/budget"),
             () => llm.fetch("https://fanout.invalid/runs", { method: "POST", body: "{}" }), () => llm.connect("127.0.0.1:80"),
             async () => (await import("cloudflare:sockets")).connect("127.0.0.1:80").opened,
             () => new WebSocket("ws://127.0.0.1/"), () => caches.default.match("https://fanout.invalid/run")]) {
             try { const answer = await how(); look(answer); look(await answer?.text?.()); } catch (error) { look(error); }
           }`,
  },
  {
    name: "changes the prototypes of objects",
    code: `Object.assign(Object.prototype, { run: "fo-run-a.b.c", budget: { usd: 1000 }, props: {}, idempotency_key: "k" });
           Array.prototype.toJSON = function () { return ["a", "b"]; };
           look(await llm.query({ prompt: BIG }).catch((error) => error));
           look(await llm.child({}).catch((error) => error));
           look(await llm.batch({ prompts: [BIG] }).catch((error) => error));`,
  },
  {
    name: "replaces what it shares with nobody",
    code: `globalThis.Promise = class extends Promise { then(...all) { look(all); return super.then(...all); } };
           Error.prepareStackTrace = (error, frames) => { look(frames.map((frame) => [String(frame.getFunction()), frame.getThis()])); return ""; };
           Map.prototype.get = Headers.prototype.set = function (...all) { look(all); };
           for (let count = 0; count < 3; count++) look(await llm.query({ prompt: "a" }).catch((error) => [error, error.stack]));`,
  },
  {
    name: "sends stubs, functions and streams as calls",
    code: `class Target extends platform.RpcTarget { toJSON() { return { prompt: BIG }; } get prompt() { return BIG; } }
           for (const call of [llm, { prompt: llm }, { prompt: () => BIG }, { toJSON: () => ({ prompt: BIG }) }, new Target(),
             { prompt: new Target() }, new ReadableStream({ type: "bytes" }), new Map([["prompt", BIG]]), llm.budget()]) {
             try { look(await llm.query(call)); } catch (error) { look(error); }
           }`,
  },
  {
    name: "sends values that explode when they are written",
    code: `const circle = []; circle.push(circle);
           let bomb = "x".repeat(1000); for (let level = 0; level < 25; level++) bomb = [bomb, bomb, bomb];
           for (const prompts of [Object.assign([], { length: 1e9 }), circle, bomb, [{ prompt: bomb }], 10n ** 9n])
             look(await llm.batch({ prompts }).catch((error) => error));`,
  },
  {
    name: "does what operators do",
    code: `for (const [name, ...sent] of [["openRun", { budget: { usd: 1000 } }], ["bind", "fo-run-a.b.c"], ["patch", { budget: { usd: 9 } }],
             ["runs"], ["answerTo", {}], ["json", {}], ["fetch"]]) {
             try { look(await llm[name](...sent)); } catch (error) { look(error); }
           }`,
  },
  {
    name: "ends its run and goes on, after it has lied in the log",
    code: `look(await llm.log({ event_type: "run_opened", data: { limits: { usd: 1000 } } }).catch((error) => error));
           look(await llm.close());
           for (let count = 0; count < 20; count++) look(await llm.query({ prompt: BIG }).catch((error) => error));`,
  },
];

/** How an attack is carried out. */
export const WAYS: readonly { name: string; code: string }[] = [
  { name: "once", code: "await attack(llm);" },
  { name: "five times at once", code: "look(await Promise.allSettled([1, 2, 3, 4, 5].map(() => attack(llm))));" },
  {
    name: "again after each refusal",
    code: "for (let again = 0; again < 3; again++) try { await attack(llm); } catch (error) { look(error); }",
  },
  { name: "as a child", code: "await attack(await llm.child({ budget: { usd: 0.05 } }));" },
];

/** The program that carries an attack out in a way, and returns every text that it has seen. */
export function hostileProgram(attack: string, way: string): string {
  return `import * as platform from "cloudflare:workers";
const BIG = "x".repeat(2000);
const seen = new Set();
const visited = new Set();
const VISITS_MAX = 5000;
function look(value, depth = 4) {
  if (typeof value === "string") seen.add(value.slice(0, 400));
  if (value === null || (typeof value !== "object" && typeof value !== "function") || depth === 0) return;
  if (visited.has(value) || visited.size > VISITS_MAX) return;
  visited.add(value);
  for (let level = value, up = 0; level !== null && up < 4; level = Object.getPrototypeOf(level), up++) {
    for (const key of Reflect.ownKeys(level)) {
      seen.add(String(key));
      try { look(value[key], depth - 1); } catch (error) { seen.add(String(error)); }
    }
  }
}
async function attack(llm) {
  ${attack}
}
export async function main(llm) {
  try {
    ${way}
  } catch (error) {
    look(error);
  }
  look(llm);
  look(platform.env);
  return [...seen].join("\\n").slice(0, 500000);
}`;
}
