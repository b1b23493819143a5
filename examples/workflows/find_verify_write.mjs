/**
 * Finds claims in a text, has each one checked by itself, and writes up those that hold.
 *
 *     npx fanout run examples/workflows/find_verify_write.mjs --budget 0.50 --args '{"text":"…"}'
 */

const CLAIMS = {
  type: "object",
  properties: { claims: { type: "array", items: { type: "string", minLength: 1 }, minItems: 1, maxItems: 8 } },
  required: ["claims"],
  additionalProperties: false,
};

const VERDICT = {
  type: "object",
  properties: { holds: { type: "boolean" }, because: { type: "string" } },
  required: ["holds", "because"],
  additionalProperties: false,
};

const TEXT =
  "Light of different colours is bent by different angles. A prism makes colours that were not there before.";

export default async function ({ agent, pipeline, phase, log, args }) {
  const text = args?.text ?? TEXT;

  phase("find");
  const found = await agent(`List the claims of this text:\n${text}`, { schema: CLAIMS, label: "find" });
  // Null is a failure of the infrastructure: it must not look like a text without claims.
  if (found === null) throw new Error("the claims could not be found");
  log(`${found.claims.length} claims`);

  phase("verify");
  const checked = await pipeline(found.claims, async (claim, _, index) => {
    const prompt = `Try to refute this claim, and say whether it holds: ${claim}`;
    const verdict = await agent(prompt, { schema: VERDICT, label: `verify ${index + 1}` });
    return verdict && { claim, ...verdict };
  });

  phase("write up");
  const held = checked.filter((each) => each?.holds);
  const report = await agent(`Write a short report of these findings:\n${JSON.stringify(held)}`, { label: "write up" });
  return {
    claims: found.claims.length,
    held: held.length,
    unchecked: checked.filter((each) => each === null).length,
    report,
  };
}
