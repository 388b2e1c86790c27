// The theme, dark or light: the user's setting, or the system's if the setting is 'auto'. Both
// pages set it as `data-theme` of the root element.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import type { Settings, Theme } from './state/settings';

export function systemTheme(): ReadonlySignal<Theme> {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const theme = signal<Theme>(dark.matches ? 'dark' : 'light');
  dark.addEventListener('change', () => {
    theme.value = dark.matches ? 'dark' : 'light';
  });
  return theme;
}

export function themeOf(
  settings: ReadonlySignal<Settings>,
  system: ReadonlySignal<Theme>,
): ReadonlySignal<Theme> {
  return computed(() => {
    const { theme } = settings.value;
    return theme === 'dark' || theme === 'light' ? theme : system.value;
  });
}

export function applyTheme(theme: ReadonlySignal<Theme>): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}
