/**
 * Runs a Python program from standard input in the Pyodide in FANOUT_RUNTIMES, with the stub importable, and prints what
 * its `main` returns as JSON. `node pyodide-host.mjs SNAPSHOT STUB [worker | page]`, with a snapshot as the driver of the stub writes it: as
 * a browser's worker it has an XMLHttpRequest that blocks; as a page a document as well.
 */
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const [snapshot = "", stub = "", place] = process.argv.slice(2);
const installed = createRequire(`${process.env.FANOUT_RUNTIMES ?? ""}/node_modules/`);
const { loadPyodide } = await import(pathToFileURL(installed.resolve("pyodide/pyodide.mjs")).href);
const variables = Object.entries(process.env).filter(([name]) => /^(FANOUT|GATEWAY)_/.test(name));
const pyodide = await loadPyodide({ _loadSnapshot: await readFile(snapshot) });
// The snapshot has the variables of the process that wrote it.
pyodide.globals.set("variables", pyodide.toPy(Object.fromEntries(variables)));

/**
 * A worker's blocking request, made by another process while this one is blocked. The timeout counts from the request: that
 * process has started by then, and has loaded what `fetch` needs.
 */
class XMLHttpRequest {
  static #PROCESS = `
const { timeout, url, ...request } = JSON.parse(require("fs").readFileSync(0, "utf8"));
fetch("data:,").then(async () => {
  const signal = timeout === 0 ? undefined : AbortSignal.timeout(timeout);
  const reply = await fetch(url, { ...request, signal });
  process.stdout.write(JSON.stringify({ status: reply.status, url: reply.url, text: await reply.text() }));
}).catch((error) => process.exit(error.name === "TimeoutError" ? 4 : 3));`;
  #request = { method: "", url: "", headers: {}, body: undefined };
  timeout = 0;
  status = 0;
  responseURL = "";
  responseText = "";

  open(method, url, isAsync) {
    if (isAsync) throw new Error("the request must block");
    Object.assign(this.#request, { method, url });
  }

  setRequestHeader(name, value) {
    this.#request.headers[name] = value;
  }

  send(body) {
    const input = JSON.stringify({ ...this.#request, timeout: this.timeout, body });
    const done = spawnSync(process.execPath, ["-e", XMLHttpRequest.#PROCESS], { input });
    if (done.status === 4) throw new DOMException("too slow", "TimeoutError");
    if (done.status !== 0) throw new DOMException("no connection", "NetworkError");
    const { status, url, text: answer } = JSON.parse(String(done.stdout));
    Object.assign(this, { status, responseURL: url, responseText: answer });
  }
}

if (place !== undefined) globalThis.XMLHttpRequest = XMLHttpRequest;
if (place === "page") globalThis.document = {};
pyodide.FS.writeFile("/home/pyodide/fanout_pyodide.py", await readFile(stub));
pyodide.runPython("import os, sys; os.environ.update(variables); sys.path.insert(0, '/home/pyodide')");
const program = `import asyncio, json\nfrom fanout_pyodide import *\n${await text(process.stdin)}`;
const printed = await pyodide.runPythonAsync(`${program}\njson.dumps(await main())`);
process.stdout.write(printed, () => process.exit(0));
