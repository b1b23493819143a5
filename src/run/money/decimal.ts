/**
 * A decimal amount times a power of ten, rounded up to an integer. Rounds to 15 digits first: 4.03 × 10⁶ is
 * 4030000.0000000005 in binary, and rounding that up would charge a unit too many.
 */
export function scaledUp(amount: number, scale: number): number {
  return Math.ceil(Number((amount * scale).toPrecision(15)));
}
