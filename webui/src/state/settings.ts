// What the person chose and expects to find again: kept in this browser only.
// Never the prompt.
import type { Level, TimingMode } from '../net/types';
import type { Metric } from './state';

export interface Settings {
  readonly theme: 'auto' | 'dark' | 'light';
  readonly metric: Metric;
  readonly log: boolean;
  readonly heatShare: number; // of the height that heat map and table divide
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repeatPenalty: number;
  readonly seed: string; // empty: the server draws one
  readonly ignoreEos: boolean;
  readonly reusePrefix: boolean;
  readonly level: Level;
  readonly timing: TimingMode;
  readonly statsPattern: string;
}

export const defaultSettings: Settings = {
  theme: 'auto',
  metric: 'ns',
  log: true,
  heatShare: 0.52,
  maxTokens: 128,
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  repeatPenalty: 1,
  seed: '',
  ignoreEos: false,
  reusePrefix: true,
  level: 'detailed',
  timing: 'fast',
  statsPattern: '',
};

const KEY = 'tensor-trace.settings';

// A value of an older version or of the wrong type falls back to its default.
export function parseSettings(text: string | null): Settings {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? '{}');
  } catch {
    return defaultSettings;
  }
  if (typeof stored !== 'object' || stored === null) return defaultSettings;
  const from = stored as Record<string, unknown>;
  const kept = Object.entries(defaultSettings).map(([key, fallback]: [string, unknown]) => [
    key,
    typeof from[key] === typeof fallback ? from[key] : fallback,
  ]);
  return Object.fromEntries(kept) as Settings;
}

// A browser that forbids storage gives the defaults and forgets.
export function loadSettings(): Settings {
  try {
    return parseSettings(localStorage.getItem(KEY));
  } catch {
    return defaultSettings;
  }
}

export function saveSettings(settings: Settings): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // Nothing is lost but the comfort.
  }
}
