/** Drives stubs/javascript/fanout.mjs inside a Worker: a command is asked over HTTP and its records are the answer. */
import * as fanout from "fanout.mjs";
import { recordsOf } from "javascript-commands.mjs";

export default {
  async fetch(request) {
    const { readable, writable } = new TransformStream();
    const writing = write(recordsOf(fanout, await request.json()), writable.getWriter());
    // Without it a driver's bug would be an answer that ends early and looks whole.
    writing.catch((error) => console.error(error));
    return new Response(readable);
  },
};

async function write(records, writer) {
  const encoder = new TextEncoder();
  try {
    for await (const record of records) await writer.write(encoder.encode(record));
    await writer.close();
  } catch (error) {
    await writer.abort(error);
    throw error;
  }
}
