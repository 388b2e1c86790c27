// The options of the panel in links: "page:experts,layers:pie,miss_ratio:line,memory:123". Pure functions.
import type { Kind } from '../../charts/scene';
import { PAGES, type PageId } from './page_list';

export type Shown = Kind | 'table';

export interface AnalyticsOptions {
  readonly page: PageId;
  readonly shown: Readonly<Record<string, string>>; // by chart: its kind or "table", ".1": the second series
  readonly memory: number | null; // bytes: the slider of the page of reuse
  readonly slots: number | null; // the slider of the expert caches
}

export function decodeAnalytics(text: string): AnalyticsOptions {
  const parts = new Map(
    text.split(',').map((part): readonly [string, string] => {
      const [key = '', ...value] = part.split(':');
      return [key, value.join(':')];
    }),
  );
  const number = (key: string): number | null => {
    const value = Number(parts.get(key) ?? NaN);
    return Number.isSafeInteger(value) && value >= 0 ? value : null;
  };
  return {
    page: PAGES.find((page) => page === parts.get('page')) ?? 'overview',
    shown: Object.fromEntries([...parts].filter(([key]) => !OWN.includes(key) && key !== '')),
    memory: number('memory'),
    slots: number('slots'),
  };
}

const OWN: readonly string[] = ['page', 'memory', 'slots'];

export const encodeAnalytics = ({ page, shown, memory, slots }: AnalyticsOptions): string =>
  [
    ...(page === 'overview' ? [] : [`page:${page}`]),
    ...Object.entries(shown).map(([chart, kind]) => `${chart}:${kind}`),
    ...(memory === null ? [] : [`memory:${memory}`]),
    ...(slots === null ? [] : [`slots:${slots}`]),
  ].join(',');

// What a chart shows: "pie.1" is the pie of its second series.
export function shownOf(text: string | undefined, kinds: readonly Kind[], isTable = false): { readonly kind: Shown; readonly series: number } {
  const [name, series] = (text ?? '').split('.');
  const kind = name === 'table' || (isTable && name === '') ? 'table' : (kinds.find((one) => one === name) ?? kinds[0] ?? 'bar');
  const n = Number(series ?? 0);
  return { kind, series: Number.isInteger(n) && n >= 0 ? n : 0 };
} // prettier-ignore
