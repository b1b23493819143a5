/**
 * A program with OpenAI's unmodified package. It contains nothing about fanout: two variables make it use the gateway, with the run
 * token as its API key.
 *
 *     OPENAI_BASE_URL=$FANOUT_URL/v1 OPENAI_API_KEY=$FANOUT_TOKEN node examples/openai_sdk.mjs
 *
 * OPENAI_MODEL selects the model. The default is the gateway's simulated model.
 */
import OpenAI, { APIError } from "openai";

const MODEL = process.env.OPENAI_MODEL || "sim/echo?ms=200&chunk_ms=20";
const QUESTIONS = 20;

const client = new OpenAI();
let cost = 0;

const ask = (content) => ({ model: MODEL, max_completion_tokens: 60, messages: [{ role: "user", content }] });

/**
 * The gateway fills `usage.cost` in, in USD, even if the provider does not; in a stream, only if the stream is edited, as those
 * of the simulated model are (docs/v1.md). `GET /runs/:id/usage` has the cost of all calls.
 */
function count(usage) {
  cost += usage?.cost ?? 0;
}

/** One answer, whole. */
async function complete(content) {
  const completion = await client.chat.completions.create(ask(content));
  count(completion.usage);
  return completion.choices[0].message.content;
}

/** One answer, piece by piece. */
async function stream(content) {
  const chunks = await client.chat.completions.create({
    ...ask(content),
    stream: true,
    stream_options: { include_usage: true },
  });
  const pieces = [];
  for await (const chunk of chunks) {
    count(chunk.usage);
    const piece = chunk.choices[0]?.delta.content;
    if (piece) pieces.push(piece);
  }
  return pieces;
}

/** Null if the run's budget is spent, for which a program with many calls must be prepared. */
async function completeOrStop(content) {
  try {
    return await complete(content);
  } catch (error) {
    if (error instanceof APIError && error.status === 402) return null;
    throw error;
  }
}

async function main() {
  console.log(`One answer:    ${await complete("Name a colour of the rainbow.")}`);
  const pieces = await stream("Name the colours of the rainbow, one after another.");
  console.log(`A stream:      ${pieces.length} pieces: ${pieces.join("|")}`);

  const started = performance.now();
  const questions = Array.from({ length: QUESTIONS }, (_, index) => `What is ${index} times ${index}?`);
  const answers = await Promise.all(questions.map(completeOrStop));
  const seconds = ((performance.now() - started) / 1000).toFixed(2);
  const answered = answers.filter((answer) => answer !== null);
  console.log(`${QUESTIONS} at once:    ${answered.length} answered in ${seconds}s, the last: ${answered.at(-1)}`);
  const refused = QUESTIONS - answered.length;
  if (refused > 0) console.log(`402:           ${refused} not sent: the run's budget is spent`);
  console.log(`Spent:         $${cost.toFixed(6)}`);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof APIError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
