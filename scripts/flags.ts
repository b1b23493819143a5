/** Reads the few `wrangler dev` flags that the start script must know of; all of them are passed on. */

/** Values of `--name value` and `--name=value`, in order. A flag without a value gives none. */
export function flagValues(args: readonly string[], name: string): string[] {
  return args.flatMap((arg, index) => {
    if (arg.startsWith(`--${name}=`)) return [arg.slice(name.length + 3)];
    const next = args[index + 1];
    return arg === `--${name}` && next !== undefined && !next.startsWith("--") ? [next] : [];
  });
}

/** `--name value` as two arguments, or none where the person gave that flag: wrangler refuses one flag given twice. */
export function unlessGiven(args: readonly string[], name: string, value: string): string[] {
  return flagValues(args, name).length > 0 ? [] : [`--${name}`, value];
}
