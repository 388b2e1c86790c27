// How long a test waits for a condition before it fails, in milliseconds: long, because it only
// delays failures. Beside other programs a page may take a minute for what it does in a second.
// Waits have no timeouts of their own; what has to be fast is measured (e2e/fair_time.ts).
export const PATIENCE_MS = 120_000;
export const TEST_MS = 5 * PATIENCE_MS;
