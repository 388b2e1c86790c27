import { describe, expect, it } from 'vitest';
import { settingsLine } from '../../../src/panels/chat/settings_line';
import { defaultSettings } from '../../../src/state/request/settings';

describe('the line of settings', () => {
  it('names what is recorded where it differs from the default', () => {
    expect(settingsLine(defaultSettings)).toBe('128 tokens, temp 0.8');
    const all = {
      level: 'verbose',
      residency: true,
      minorFaults: true,
      attention: true,
      lens: true,
      residual: true,
      router: true,
    } as const;
    expect(settingsLine({ ...defaultSettings, temperature: 0, ...all })).toBe(
      '128 tokens, greedy, level verbose, what is in memory, attention weights, logit lens, residual stream, router scores, minor faults',
    );
  });
});
