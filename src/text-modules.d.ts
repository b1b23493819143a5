/** Files that are bundled as their text: see `rules` in wrangler.toml. */
declare module "*.py" {
  const text: string;
  export default text;
}
