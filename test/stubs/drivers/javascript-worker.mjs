/** Drives stubs/javascript/fanout.mjs inside a Worker: it receives a command over HTTP and responds with its records. */
import * as fanout from "fanout.mjs";
import { drive } from "javascript-commands.mjs";

export default {
  async fetch(request) {
    const { readable, writable } = new TransformStream();
    const running = run(await request.json(), writable.getWriter());
    // Without it a driver's bug would be an answer that ends early and looks whole.
    running.catch((error) => console.error(error));
    return new Response(readable);
  },
};

async function run(args, writer) {
  const encoder = new TextEncoder();
  try {
    await drive(fanout, args, (record) => writer.write(encoder.encode(record)));
    await writer.close();
  } catch (error) {
    await writer.abort(error);
    throw error;
  }
}
