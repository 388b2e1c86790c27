// The theme, dark, light or of high contrast: the user's setting, or the system's if the setting is 'auto'. Both
// pages set it as `data-theme` of the root element.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import { THEMES, type Settings, type Theme } from './state/request/settings';

export function systemTheme(): ReadonlySignal<Theme> {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const contrast = matchMedia('(prefers-contrast: more)');
  const chosen = (): Theme => (contrast.matches ? 'contrast' : dark.matches ? 'dark' : 'light');
  const theme = signal(chosen());
  for (const query of [dark, contrast]) {
    query.addEventListener('change', () => {
      theme.value = chosen();
    });
  }
  return theme;
}

export function themeOf(
  settings: ReadonlySignal<Settings>,
  system: ReadonlySignal<Theme>,
): ReadonlySignal<Theme> {
  return computed(() => {
    const { theme } = settings.value;
    return THEMES.find((one) => one === theme) ?? system.value;
  });
}

export function applyTheme(theme: ReadonlySignal<Theme>): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}
