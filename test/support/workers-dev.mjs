/** Preloaded into a deployment (`node --import`): addresses below workers.dev are those of the stand-in of Cloudflare's API. */
const real = globalThis.fetch;
const standIn = process.env["CLOUDFLARE_API_BASE_URL"] ?? "";

globalThis.fetch = (input, init) => {
  const url = new URL(input instanceof Request ? input.url : input);
  if (!url.hostname.endsWith(".workers.dev")) return real(input, init);
  return real(new URL(`/gateway${url.pathname}`, standIn), init);
};
