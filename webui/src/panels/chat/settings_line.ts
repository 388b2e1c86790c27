// The settings of the next run in one line.
import { formatCount, timingName } from '../../format';
import { capturesAttention } from '../../state/request';
import type { Settings } from '../../state/settings';

// What is recorded is said only where it differs from the default.
export function settingsLine(s: Settings): string {
  return [
    `${formatCount(s.maxTokens)} tokens`,
    s.temperature === 0 ? 'greedy' : `temp ${s.temperature}`,
    s.level === 'detailed' ? '' : `level ${s.level}`,
    s.timing === 'fast' ? '' : `op times ${timingName(s.timing)}`,
    s.residency ? 'what is in memory' : '',
    capturesAttention(s) ? 'attention weights' : '',
    s.minorFaults ? 'minor faults' : '',
  ]
    .filter(Boolean)
    .join(', ');
}
