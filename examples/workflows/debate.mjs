/**
 * Two sides argue about a question, each against what the other has said last. A judge reads both, in either order, because judges
 * prefer what they read first: only a verdict that both readings share decides.
 *
 *     npx fanout run examples/workflows/debate.mjs --budget 0.50 --args '{"question":"…","rounds":3}'
 */

const SIDES = ["for", "against"];

const VERDICT = {
  type: "object",
  properties: { winner: { enum: [...SIDES, "neither"] }, because: { type: "string" } },
  required: ["winner", "because"],
  additionalProperties: false,
};

export default async function ({ agent, parallel, phase, log, args }) {
  const question = args?.question ?? "Should a retry of a payment have a key?";
  const rounds = args?.rounds ?? 2;
  let said = [null, null];

  for (let round = 1; round <= rounds; round++) {
    phase(`round ${round}`);
    const before = said;
    const now = await parallel(
      SIDES.map((side, at) => () => {
        const other = before[1 - at];
        const shown = other === null ? "You begin." : `The other side says: ${other}\nAnswer that.`;
        return agent(`You argue ${side}: ${question}\n${shown}`, { label: `${side} ${round}` });
      }),
    );
    // A side whose call failed keeps what it has said before.
    said = now.map((text, at) => text ?? before[at]);
  }
  if (said.includes(null)) throw new Error("a side has said nothing");

  phase("judge");
  const sides = SIDES.map((side, at) => `${side}: ${said[at]}`);
  const read = await parallel(
    [sides, sides.toReversed()].map((order, at) => () => {
      const prompt = `You judge a debate on: ${question}\n${order.join("\n")}\nWho has the better reasons?`;
      return agent(prompt, { schema: VERDICT, label: `judge ${at + 1}` });
    }),
  );
  const [first, second] = read;
  const isShared = first !== null && second !== null && first.winner === second.winner;
  log(isShared ? `both readings: ${first.winner}` : "the readings differ");
  return { question, rounds, decided: isShared, winner: isShared ? first.winner : null, verdicts: read };
}
