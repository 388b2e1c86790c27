// Dark or light: as the person chose, else as the system says.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import type { Settings } from './state/settings';

export type Theme = 'dark' | 'light';

export function applyTheme(settings: ReadonlySignal<Settings>): ReadonlySignal<Theme> {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const system = signal<Theme>(dark.matches ? 'dark' : 'light');
  dark.addEventListener('change', () => {
    system.value = dark.matches ? 'dark' : 'light';
  });
  const theme = computed(() => {
    const chosen = settings.value.theme;
    return chosen === 'dark' || chosen === 'light' ? chosen : system.value;
  });
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
  return theme;
}
