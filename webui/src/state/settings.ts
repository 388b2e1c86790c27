// What the person chose and expects to find again: kept in this browser only.
// Never the prompt.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { Level, TimingMode } from '../net/types';

export type Metric = 'ns' | 'bytes';
export type Theme = 'dark' | 'light';
export type ThemeChoice = 'auto' | Theme;

export interface Settings {
  readonly theme: ThemeChoice;
  readonly letterKeys: boolean; // single letters are shortcuts
  readonly showSide: boolean;
  readonly showInspector: boolean;
  // Parts of the width or the height that two areas divide.
  readonly sideShare: number;
  readonly inspectorShare: number;
  readonly chatShare: number;
  readonly upperShare: number;
  readonly metric: Metric;
  readonly log: boolean;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repeatPenalty: number;
  readonly repeatLastN: number;
  readonly seed: string; // empty: the server draws one
  readonly stop: string; // one per line
  readonly ignoreEos: boolean;
  readonly reusePrefix: boolean;
  readonly level: Level;
  readonly timing: TimingMode;
  readonly statsPattern: string; // empty: the server's
}

// What the server describes where none is sent.
export const serverStatsPattern = 'attn_out|ffn_out|ffn_moe_out|l_out|result_';

export const defaultSettings: Settings = {
  theme: 'auto',
  letterKeys: true,
  showSide: true,
  showInspector: true,
  sideShare: 0.24,
  inspectorShare: 0.22,
  chatShare: 0.64,
  upperShare: 0.54,
  metric: 'ns',
  log: true,
  maxTokens: 128,
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  repeatPenalty: 1,
  repeatLastN: 64,
  seed: '',
  stop: '',
  ignoreEos: false,
  reusePrefix: true,
  level: 'detailed',
  timing: 'fast',
  statsPattern: '',
};

// How the page is divided; the rest is about runs and values.
export const defaultLayout: Partial<Settings> = {
  showSide: defaultSettings.showSide,
  showInspector: defaultSettings.showInspector,
  sideShare: defaultSettings.sideShare,
  inspectorShare: defaultSettings.inspectorShare,
  chatShare: defaultSettings.chatShare,
  upperShare: defaultSettings.upperShare,
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
export class SettingsStore {
  readonly chosen: ReadonlySignal<Settings>;
  private readonly current = signal<Settings>(defaultSettings);
  private readonly storage: Pick<Storage, 'getItem' | 'setItem'> | null;

  constructor(storage: Pick<Storage, 'getItem' | 'setItem'> | null) {
    this.chosen = this.current;
    this.storage = storage;
    try {
      this.current.value = parseSettings(storage?.getItem(KEY) ?? null);
    } catch {
      // The defaults, then.
    }
  }

  set(change: Partial<Settings>): void {
    this.current.value = { ...this.current.peek(), ...change };
    try {
      this.storage?.setItem(KEY, JSON.stringify(this.current.peek()));
    } catch {
      // Nothing is lost but the comfort.
    }
  }
}
