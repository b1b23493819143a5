/** Bundles the gateway as one CommonJS module, which a simulation evaluates once per isolate. */
import { build, stop } from "esbuild";
import { textFiles } from "../../scripts/local/text-files.ts";
import { buildPage } from "../../scripts/page/bundle.ts";

export async function bundleGateway(root: string): Promise<string> {
  buildPage(root);
  try {
    const built = await build({
      absWorkingDir: root,
      entryPoints: ["src/index.ts"],
      bundle: true,
      write: false,
      format: "cjs",
      target: "es2024",
      conditions: ["workerd", "worker", "browser"],
      external: ["cloudflare:*"],
      plugins: [textFiles],
      logLevel: "silent",
    });
    return built.outputFiles[0]?.text ?? "";
  } finally {
    await stop();
  }
}
