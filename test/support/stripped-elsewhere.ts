/** Prints its arguments, and whether this process has loaded the compiler that strips types. */
const loaded: unknown = Reflect.get(process, "moduleLoadList");
const hasCompiler = Array.isArray(loaded) && loaded.some((name) => String(name).includes("amaro"));
console.log(JSON.stringify({ args: process.argv.slice(2), hasCompiler }));
