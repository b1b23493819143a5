/**
 * `raw.mjs CALLS`: one Promise.all over all calls, as plain requests without keys. Some calls before them make the gateway hold credit of
 * the run, so that it starts these by itself and keeps their window. Prints what failed, and the time.
 */
const BEFORE = 5;
const calls = Number(process.argv[2]);

async function query(prompt) {
  const headers = { authorization: `Bearer ${process.env.FANOUT_TOKEN}`, "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify({ prompt }) };
  const reply = await fetch(`${process.env.FANOUT_URL}/query`, init);
  const text = await reply.text();
  if (!reply.ok) throw new Error(text);
}

await Promise.all(Array.from({ length: BEFORE }, (_, each) => query(`before ${each}`)));
const started = performance.now();
const ends = await Promise.allSettled(Array.from({ length: calls }, (_, each) => query(`raw ${each}`)));
const failed = ends.flatMap(({ reason }) => (reason === undefined ? [] : [String(reason)]));
console.log(JSON.stringify({ failed, wallMs: performance.now() - started }));
