/**
 * The official client of the Model Context Protocol as a process: connects to `argv[2]` with the token `argv[3]`, makes the calls
 * of `argv[4]` (JSON: `[name, arguments]`), and prints what it got. `argv[5]` is how it agrees on a revision: `legacy`, `auto`, or
 * the one revision that it insists on. A process, so that checking types does not need the package.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, token, calls, revision = "auto"] = process.argv.slice(2);
const modern = /^\d/.test(revision) && revision >= "2026";
const mode = revision === "auto" || revision === "legacy" ? revision : modern ? { pin: revision } : "legacy";
const older = /^\d/.test(revision) && !modern ? { supportedProtocolVersions: [revision] } : {};
const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode }, ...older });
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
const server = client.getServerVersion();
const spoken = client.getNegotiatedProtocolVersion?.() ?? null;
await client.close();
process.stdout.write(JSON.stringify({ server, spoken, tools: tools.map(({ name }) => name), results }));
