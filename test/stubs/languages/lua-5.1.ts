import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "lua-5.1",
  needs: [
    ["lua5.1", "-v"],
    ["curl", "--version"],
  ],
  run: () => ["lua5.1", join(ROOT, "test/stubs/drivers/lua.lua")],
  env: () => ({ LUA_PATH: join(ROOT, "stubs/lua/?.lua") }),
  streams: true,
};
