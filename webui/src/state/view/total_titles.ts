// The titles of the columns of totals, by their keys: those of the table, and what a message says that
// rows are sorted by. Data.
export const TOTAL_TITLES = {
  time: 'step: median', // of a session that has ended; else the sum
  time_sum: 'sum of time',
  time_share: 'of the step',
  bytes: 'bytes',
  bytes_share: 'of bytes',
  bytes_read: 'read',
  bytes_written: 'written',
  reads: 'reads',
  writes: 'writes',
  executions: 'ops',
  faults: 'disk waits',
  rate: 'rate',
} as const;

// " sorted by “step: median”"; '': not by a column of totals.
export function sortedByText(sort: string | undefined): string {
  const key = sort?.replace(/^-/, '') ?? '';
  return key in TOTAL_TITLES ? `sorted by “${TOTAL_TITLES[key as keyof typeof TOTAL_TITLES]}”` : '';
}
