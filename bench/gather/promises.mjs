/** `promises.mjs CALLS`: one Promise.all over all calls through the stub. Prints what failed, and the time. */
import { llmQuery } from "../../stubs/javascript/fanout.mjs";

const calls = Number(process.argv[2]);
const started = performance.now();
const ends = await Promise.allSettled(Array.from({ length: calls }, (_, each) => llmQuery(`promise ${each}`)));
const failed = ends.flatMap(({ reason }) => (reason === undefined ? [] : [String(reason)]));
console.log(JSON.stringify({ failed, wallMs: performance.now() - started }));
