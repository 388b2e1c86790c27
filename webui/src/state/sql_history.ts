// The statements that were run in this browser, the newest first.
import { signal, type ReadonlySignal } from '@preact/signals';
import { storage } from '../storage';

const KEY = 'tensor-trace.sql';
const MAX = 50;

const kept = signal<readonly string[] | null>(null); // null: not read yet

function read(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(storage('localStorage')?.getItem(KEY) ?? '[]');
    return Array.isArray(stored) ? stored.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

export function sqlHistory(): ReadonlySignal<readonly string[]> {
  kept.value ??= read();
  return kept as ReadonlySignal<readonly string[]>;
}

export function remember(sql: string): void {
  const next = [
    sql,
    ...sqlHistory()
      .peek()
      .filter((one) => one !== sql),
  ].slice(0, MAX);
  kept.value = next;
  try {
    storage('localStorage')?.setItem(KEY, JSON.stringify(next));
  } catch {
    // Full or forbidden: the list lives as long as the page.
  }
}
