/** Pages of which origins may call the gateway. */

/** Whether pages of an origin may, by the configured origins. */
export function isAllowedOrigin(origins: readonly string[], origin: string): boolean {
  return origins.includes("*") || origins.includes(origin);
}
