/**
 * Serves the model with roles, for a gateway that a reader starts: `node test/support/role-model/main.ts`. Its address is an
 * upstream's `base_url`, and its models may have any name. It also has the tools of the compiler's example, at `/tools`.
 */
import { startUpstream } from "../upstream.ts";
import { roleModel } from "./answer.ts";
import { startTools } from "./tools.ts";

const PORT = Number(process.env["ROLE_MODEL_PORT"] ?? 8790);
const upstream = await startUpstream(roleModel, { port: PORT });
const tools = await startTools(PORT + 1);
console.log(`the model with roles: ${upstream.baseUrl}\nits tools: ${tools.url}`);
