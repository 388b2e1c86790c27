// The user's settings, stored in this browser only. They never contain the prompt.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { Level, TimingMode } from '../../net/types';

export const THEMES = ['dark', 'light', 'contrast'] as const;
export type Theme = (typeof THEMES)[number];
export type ThemeChoice = 'auto' | Theme;

export interface Settings {
  readonly theme: ThemeChoice;
  readonly letterKeys: boolean; // single-key shortcuts are enabled
  readonly layout: string; // JSON (layout.ts); empty: the default
  readonly tour: boolean; // the guided tour is shown
  readonly tourStep: number; // where it was left
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repeatPenalty: number;
  readonly repeatLastN: number;
  readonly moreSampling: string; // JSON: further fields of the request; empty: none
  readonly seed: string; // empty: random
  readonly stop: string; // one per line
  readonly ignoreEos: boolean;
  readonly reusePrefix: boolean;
  readonly level: Level;
  readonly timing: TimingMode;
  readonly minorFaults: boolean; // record each minor page fault, too
  readonly residency: boolean; // record what of the model is in memory
  readonly attention: boolean; // capture the attention weights
  readonly lens: boolean; // capture what the model would say after each layer
  readonly residual: boolean; // capture the residual stream
  readonly router: boolean; // capture by what experts are chosen
  readonly captureRules: string; // further rules of what is captured, separated by spaces
  readonly statsPattern: string; // empty: the server's default
}

// The server's default of `stats_pattern`.
export const defaultStatsPattern = 'attn_out|ffn_out|ffn_moe_out|l_out|result_';

export const defaultSettings: Settings = {
  theme: 'auto',
  letterKeys: true,
  layout: '',
  tour: false,
  tourStep: 0,
  maxTokens: 128,
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  repeatPenalty: 1,
  repeatLastN: 64,
  moreSampling: '',
  seed: '',
  stop: '',
  ignoreEos: false,
  reusePrefix: true,
  level: 'detailed',
  timing: 'fast',
  minorFaults: false,
  residency: false,
  attention: false,
  lens: false,
  residual: false,
  router: false,
  captureRules: '',
  statsPattern: '',
};

const KEY = 'tensor-trace.settings';

// Missing values and values of the wrong type get their default.
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

// Without browser storage, settings start with the defaults and are not saved.
export class SettingsStore {
  readonly current: ReadonlySignal<Settings>;
  private readonly stored = signal<Settings>(defaultSettings);
  private readonly storage: Pick<Storage, 'getItem' | 'setItem'> | null;

  constructor(storage: Pick<Storage, 'getItem' | 'setItem'> | null) {
    this.current = this.stored;
    this.storage = storage;
    try {
      this.stored.value = parseSettings(storage?.getItem(KEY) ?? null);
    } catch {
      // Keep the defaults.
    }
  }

  set(change: Partial<Settings>): void {
    this.stored.value = { ...this.stored.peek(), ...change };
    try {
      this.storage?.setItem(KEY, JSON.stringify(this.stored.peek()));
    } catch {
      // Storage is optional.
    }
  }
}
