/**
 * A program that makes many calls at once and is killed in the middle: `node program.ts URL ANSWERS`, with the requests as JSON in
 * FANOUT_CALL: `{ headers, bodies }`. After so many answers it prints the time, epoch ms, and kills itself.
 */
import { writeSync } from "node:fs";
import { request } from "node:http";
import { env, kill, pid, argv } from "node:process";
import { z } from "zod";

const [url = "", answersWanted = ""] = argv.slice(2);
const call = z
  .object({ headers: z.record(z.string(), z.string()), bodies: z.array(z.string()) })
  .parse(JSON.parse(env["FANOUT_CALL"] ?? ""));
let answers = 0;
for (const body of call.bodies) {
  const client = request(url, { method: "POST", agent: false, headers: call.headers }, (response) => {
    response.resume().on("end", () => {
      answers += 1;
      if (answers < Number(answersWanted)) return;
      writeSync(1, `${Date.now()}\n`);
      kill(pid, "SIGKILL");
    });
  });
  client.end(body);
}
