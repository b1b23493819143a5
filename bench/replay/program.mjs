// The program that is killed: a thousand calls in random order, 64 at a time, through the stub. Prints each prompt whose answer
// it has, and "done".
import { configure, llmQuery } from "../../stubs/javascript/fanout.mjs";

const [url, token, calls] = process.argv.slice(2);
configure({ url, token });
const left = Array.from({ length: Number(calls) }, (_, at) => `prompt ${at}`);
for (let at = left.length - 1; at > 0; at--) {
  const other = Math.floor(Math.random() * (at + 1));
  [left[at], left[other]] = [left[other], left[at]];
}
/** The calls of lives that were killed may fill the run for a while. */
async function answered(prompt) {
  for (;;) {
    try {
      return await llmQuery(prompt);
    } catch (error) {
      if (!error.retryable) throw error;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs ?? 500));
    }
  }
}
async function work() {
  for (let prompt = left.pop(); prompt !== undefined; prompt = left.pop()) {
    await answered(prompt);
    process.stdout.write(`${prompt}\n`);
  }
}
await Promise.all(Array.from({ length: 64 }, work));
process.stdout.write("done\n");
