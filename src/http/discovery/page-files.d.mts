/** The files that the run page loads. */
export const PAGE_FILES: { readonly script: string; readonly style: string };
