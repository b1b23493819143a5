/** Stands for `wrangler dev FILE --port N`: serves the Worker in this process, with the shell's variables as its own. */
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [file, , port] = process.argv.slice(2);
const { default: worker, Sandbox } = await import(pathToFileURL(file).href);
createServer((request, response) => {
  const { FANOUT_URL, ADMIN_KEY } = process.env;
  worker
    .fetch(new Request(`http://127.0.0.1:${port}${request.url}`), { Sandbox, FANOUT_URL, ADMIN_KEY })
    .then(async (answer) => response.end(await answer.text()))
    .catch((error) => response.writeHead(500).end(String(error.stack)));
}).listen(Number(port), "127.0.0.1");
