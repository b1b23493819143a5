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
async function work() {
  for (let prompt = left.pop(); prompt !== undefined; prompt = left.pop()) {
    await llmQuery(prompt);
    process.stdout.write(`${prompt}\n`);
  }
}
await Promise.all(Array.from({ length: 64 }, work));
process.stdout.write("done\n");
