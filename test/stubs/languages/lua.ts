import { join } from "node:path";
import { ROOT, type Language } from "../language.ts";

export const language: Language = {
  name: "lua",
  needs: [
    ["lua5.4", "-v"],
    ["curl", "--version"],
  ],
  run: () => ["lua5.4", join(ROOT, "test/stubs/drivers/lua.lua")],
  env: () => ({ LUA_PATH: join(ROOT, "stubs/lua/?.lua") }),
  streams: true,
};
