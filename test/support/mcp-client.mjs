/**
 * The official client of the Model Context Protocol as a process: connects to `argv[2]` with the token `argv[3]`, makes the calls
 * of `argv[4]` (JSON: `[name, arguments]`), and prints what it got. A process, so that checking types does not need the package.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token, calls] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1.0.0" });
const headers = { authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } }));
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of JSON.parse(calls)) {
  results.push(
    await client.callTool({ name, arguments: args }).then(
      (result) => result,
      (error) => ({ thrown: error.message, code: error.code }),
    ),
  );
}
await client.ping();
const server = client.getServerVersion();
await client.close();
process.stdout.write(JSON.stringify({ server, tools: tools.map(({ name }) => name), results }));
