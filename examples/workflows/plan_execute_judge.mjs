/**
 * A model plans steps, each of which starts when the steps that it needs have ended; a judge says whether the results suffice, or what
 * is missing, for which there is one more plan at most.
 *
 *     npx fanout run examples/workflows/plan_execute_judge.mjs --budget 0.50 --args '{"goal":"…"}'
 */

const PLAN = {
  type: "object",
  properties: {
    steps: {
      type: "array",
      minItems: 1,
      maxItems: 8,
      items: {
        type: "object",
        properties: { task: { type: "string", minLength: 1 }, needs: { type: "array", items: { type: "integer" } } },
        required: ["task", "needs"],
        additionalProperties: false,
      },
    },
  },
  required: ["steps"],
  additionalProperties: false,
};

const VERDICT = {
  type: "object",
  properties: { enough: { type: "boolean" }, answer: { type: "string" }, missing: { type: "string" } },
  required: ["enough", "answer", "missing"],
  additionalProperties: false,
};

const PLANS_MAX = 2;

export default async function ({ agent, phase, log, args }) {
  const goal = args?.goal ?? "Compare the melting points of iron and tin.";
  const results = [];
  let missing = "";

  for (let plans = 1; ; plans++) {
    phase(`plan ${plans}`);
    const known = results.length === 0 ? "" : `\nKnown:\n${JSON.stringify(results)}\nMissing: ${missing}`;
    const prompt = `Plan steps towards this goal. A step needs the numbers of earlier ones, from 1.\nGoal: ${goal}${known}`;
    const plan = await agent(prompt, { schema: PLAN, label: `plan ${plans}` });
    if (plan === null) throw new Error("there is no plan");

    phase(`execute ${plans}`);
    results.push(...(await execute(plan.steps, agent, plans)));

    phase(`judge ${plans}`);
    const asked = `Judge whether these results suffice.\nGoal: ${goal}\nResults:\n${JSON.stringify(results)}`;
    const verdict = await agent(asked, { schema: VERDICT, label: `judge ${plans}` });
    if (verdict === null) throw new Error("nobody has judged the results");
    log(verdict.enough ? "the results suffice" : `missing: ${verdict.missing}`);
    if (verdict.enough || plans === PLANS_MAX) return { goal, plans, results, ...verdict };
    ({ missing } = verdict);
  }
}

/** The results of steps, in the order of the plan; each call is sent once what it needs is there. Null: the call has failed. */
function execute(steps, agent, plan) {
  const running = [];
  for (const [at, { task, needs }] of steps.entries()) {
    // What is no earlier step is ignored: a step cannot wait for itself.
    const earlier = [...new Set(needs)].filter((number) => number >= 1 && number <= at);
    running.push(
      Promise.all(earlier.map((number) => running[number - 1])).then(async (found) => {
        const shown = found.map(({ task: needed, result }) => `\n${needed}: ${result ?? "has failed"}`).join("");
        return { task, result: await agent(`${task}${shown}`, { label: `plan ${plan} step ${at + 1}` }) };
      }),
    );
  }
  return Promise.all(running);
}
