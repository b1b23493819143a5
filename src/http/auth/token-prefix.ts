/** How tokens begin: by it people, secret scanners and the gateway recognise one. */

/** Of every run token. */
export const TOKEN_PREFIX = "fo-run-";
/** Of every token of pull workers. */
export const WORKER_TOKEN_PREFIX = "fo-pull-";
