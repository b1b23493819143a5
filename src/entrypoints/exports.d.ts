/** Gives `ctx.exports` the types of the Worker's entry: https://developers.cloudflare.com/workers/runtime-apis/context/#exports */
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import("../index.ts");
  }
}
