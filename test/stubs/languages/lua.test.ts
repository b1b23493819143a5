import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "lua",
  needs: [
    ["lua5.4", "-v"],
    ["curl", "--version"],
  ],
  run: () => ["lua5.4", join(ROOT, "test/stubs/drivers/lua.lua")],
  env: () => ({ LUA_PATH: join(ROOT, "stubs/lua/?.lua") }),
});
