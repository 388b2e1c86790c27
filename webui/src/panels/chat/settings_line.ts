// The settings of the next run in one line.
import { formatCount, timingName } from '../../format';
import { CAPTURE_TITLES, capturesOf, ownRulesOf } from '../../state/request/request';
import type { Settings } from '../../state/request/settings';

// What is recorded is said only where it differs from the default.
export function settingsLine(s: Settings): string {
  return [
    `${formatCount(s.maxTokens)} tokens`,
    s.temperature === 0 ? 'greedy' : `temp ${s.temperature}`,
    s.level === 'detailed' ? '' : `level ${s.level}`,
    s.timing === 'fast' ? '' : `op times ${timingName(s.timing)}`,
    s.residency ? 'what is in memory' : '',
    ...capturesOf(s).map((capture) => CAPTURE_TITLES[capture].toLowerCase()),
    ...ownRulesOf(s).map((rule) => `values of ${rule}`),
    s.minorFaults ? 'minor faults' : '',
  ]
    .filter(Boolean)
    .join(', ');
}
