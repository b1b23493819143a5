/**
 * A panel reviews a proposal: each member by its own standard, then each once more with the others' reviews, then a chair decides.
 * The functions are global; the result is what the file exports as its default.
 *
 *     npx fanout run examples/workflows/review_panel.mjs --budget 0.50
 */

const MEMBERS = ["security", "cost", "maintenance"];

const REVIEW = {
  type: "object",
  properties: { score: { type: "integer", minimum: 1, maximum: 5 }, objection: { type: "string" } },
  required: ["score", "objection"],
  additionalProperties: false,
};

const proposal = args?.proposal ?? "Move all scheduled jobs into one service.";

phase("review");
const first = await parallel(
  MEMBERS.map((member) => () => {
    const prompt = `You judge by ${member} only. Review this proposal: ${proposal}`;
    return agent(prompt, { schema: REVIEW, label: member });
  }),
);

phase("reconsider");
const second = await parallel(
  MEMBERS.map((member, at) => () => {
    const others = first.filter((review, other) => other !== at && review !== null);
    const prompt = `You judge by ${member} only. Proposal: ${proposal}\nThe others said: ${JSON.stringify(others)}\nReview again.`;
    return agent(prompt, { schema: REVIEW, label: `${member}, again` });
  }),
);

phase("decide");
const reviews = second.map((review, at) => ({ member: MEMBERS[at], ...(review ?? first[at]) }));
const scores = reviews.flatMap(({ score }) => (score === undefined ? [] : [score]));
log(`${scores.length} of ${MEMBERS.length} members have a score`);
const decision = await agent(`Decide on this proposal, in one sentence: ${proposal}\n${JSON.stringify(reviews)}`, {
  label: "chair",
});

export default { mean: scores.reduce((sum, score) => sum + score, 0) / Math.max(1, scores.length), reviews, decision };
