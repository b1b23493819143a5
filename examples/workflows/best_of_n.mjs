/**
 * Asks one question several times, has each answer verified by itself, and returns the best of those that hold.
 *
 *     npx fanout run examples/workflows/best_of_n.mjs --budget 0.50 --args '{"question":"…","n":8}'
 */

const CHECK = {
  type: "object",
  properties: { holds: { type: "boolean" }, score: { type: "integer", minimum: 0, maximum: 10 } },
  required: ["holds", "score"],
  additionalProperties: false,
};

export default async function ({ agent, pipeline, phase, log, args }) {
  const question = args?.question ?? "How many primes are there below 100?";
  const numbers = Array.from({ length: args?.n ?? 4 }, (_, at) => at + 1);

  phase("answer and verify");
  const checked = await pipeline(
    numbers,
    (number) => agent(question, { label: `answer ${number}`, temperature: 1 }),
    async (answer, number) => {
      const prompt = `Verify this answer by a way of your own.\nQuestion: ${question}\nAnswer: ${answer}`;
      const check = await agent(prompt, { schema: CHECK, label: `verify ${number}` });
      return check && { number, answer, ...check };
    },
  );

  // Null is a failure of the infrastructure: an answer that nobody has verified is not the best one.
  const held = checked.filter((each) => each?.holds);
  log(`${held.length} of ${numbers.length} answers hold`);
  const best = held.toSorted((one, other) => other.score - one.score)[0] ?? null;
  const unverified = checked.filter((each) => each === null).length;
  return { question, answers: numbers.length, held: held.length, unverified, best };
}
