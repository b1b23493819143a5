import { join } from "node:path";
import { conformance } from "../conformance.ts";
import { ROOT } from "../language.ts";

conformance({
  name: "lua-5.1",
  needs: [
    ["lua5.1", "-v"],
    ["curl", "--version"],
  ],
  run: () => ["lua5.1", join(ROOT, "test/stubs/drivers/lua.lua")],
  env: () => ({ LUA_PATH: join(ROOT, "stubs/lua/?.lua") }),
});
