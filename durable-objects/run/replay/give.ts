/**
 * Recorded answers that a run gives to calls of its child runs. Each such call counts as one of the run's own: in an epoch, no
 * answer is given twice, whichever run requests it, so n equal calls of a program stay n samples.
 */
import { answerChars } from "../../../src/answer.ts";
import { ANSWERS_REPLY_CHARS_MAX } from "../../../src/limits.ts";
import type { AnswersToTake, NamedAnswer } from "../../../src/objects/methods/replay.ts";
import type { RunReplay } from "./replay.ts";

/**
 * Replies once every call is known to have an answer or not: this may need a request to a run above.
 * @param replay null = the run records nothing.
 */
export function giveAnswers(
  replay: Pick<RunReplay, "recallKey"> | null,
  { child, wanted }: { child: string; wanted: readonly AnswersToTake[] },
  reply: (given: (NamedAnswer[] | null)[]) => void,
): void {
  if (replay === null) return reply(wanted.map(() => []));
  const given: (NamedAnswer[] | null)[] = [];
  let chars = 0;
  // One more than calls, until all of them have been looked up.
  let undecided = 1;
  const decided = (): void => {
    undecided -= 1;
    if (undecided === 0) reply(given);
  };
  for (const { epoch, key, calls } of wanted) {
    if (chars > ANSWERS_REPLY_CHARS_MAX) {
      given.push(null);
      continue;
    }
    const answers: NamedAnswer[] = [];
    given.push(answers);
    for (const call of calls) {
      undecided += 1;
      const look = (): void => {
        const found = replay.recallKey({ callId: `${child}/${call}`, epoch, key, mayShare: false }, look);
        if (found === "awaited") return;
        if (found !== null) {
          answers.push(found);
          chars += answerChars(found);
        }
        decided();
      };
      look();
    }
  }
  decided();
}
