/**
 * Loaded into Portkey's process before it. Portkey 1.15.2 adds headers to the answers of `fetch`, whose headers cannot be
 * changed: with the newest @hono/node-server that its package.json allows, every stream ends as a 500. Answers with headers
 * of their own let it stream; the body stays the same object, so a chunk costs what it did.
 */
const unchanged = globalThis.fetch;
const Answer = globalThis.Response;
globalThis.fetch = async (input, init) => {
  const answer = await unchanged(input, init);
  return new Answer(answer.body, answer);
};
