/**
 * For a test of hundreds or thousands of calls: seconds of a quiet machine, all of them processor time, and as many times that
 * on a busy one as it has programs for a core. Other tests keep their project's limit: what takes as long as a lease lasts
 * is stuck.
 */
export const MANY_CALLS = { timeout: 240_000 };
