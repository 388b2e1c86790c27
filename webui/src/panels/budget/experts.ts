// What the plan did for the experts of a mixture of experts, as parts of a whole. Pure functions.
import { formatBytes, formatCount } from '../../format';
import type { Memory } from '../../net/types';

export interface ExpertPart {
  readonly name: string;
  readonly hint: string;
  readonly part: string;
  readonly whole: string;
  readonly share: number | null; // 0 to 1; null: nothing yet
}

// Empty: the plan has no experts.
export function expertParts(state: Memory): readonly ExpertPart[] {
  if (state.plan.expert_bytes === 0) return [];
  const { expert_hits: hits, expert_misses: misses } = state;
  const { experts_predicted: predicted, experts_predicted_right: right } = state;
  const { expert_bytes_ahead: ahead, expert_bytes_wasted: wasted } = state;
  const share = (part: number, whole: number): number | null => (whole > 0 ? part / whole : null);
  return [
    {
      name: 'found in memory',
      hint: 'Experts that a token used and that were in memory (hits), of all that it used',
      part: formatCount(hits),
      whole: `of ${formatCount(hits + misses)} used`,
      share: share(hits, hits + misses),
    },
    {
      name: 'predicted rightly',
      hint: 'Experts that the router chose, of those that were predicted before it chose and were not in memory',
      part: formatCount(right),
      whole: `of ${formatCount(predicted)} predicted`,
      share: share(right, predicted),
    },
    {
      name: 'read for nothing',
      hint: 'Bytes of experts that were read ahead of the router, which then did not choose them',
      part: formatBytes(wasted),
      whole: `of ${formatBytes(ahead)} read ahead`,
      share: share(wasted, ahead),
    },
  ];
}
