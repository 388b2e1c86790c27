// The options of the graph, and their form in links: "model,heat:bytes,all,open:3_ffn.4_moe,hide:output".
// A missing or invalid part has its default. Pure functions.
import type { Category } from '../net/types';
import { CATEGORIES } from './categories';

// In the list of opened groups: every group is open, except those that are listed.
export const EVERY_GROUP = 'every';

export const FORMS = ['layer', 'model', 'list'] as const;
export type GraphForm = (typeof FORMS)[number];
export const HEATS = ['none', 'time', 'bytes', 'faults'] as const;
export type Heat = (typeof HEATS)[number];

export const HEAT_NAMES: Readonly<Record<Heat, string>> = {
  none: 'kind',
  time: 'time',
  bytes: 'bytes',
  faults: 'disk waits',
};

export interface GraphOptions {
  readonly form: GraphForm;
  readonly heat: Heat;
  readonly all: boolean; // heat of the session (or the brushed range) instead of the step
  readonly open: readonly string[]; // groups of the model that are opened (whole.ts)
  readonly hide: readonly Category[];
}

export const defaultGraph: GraphOptions = {
  form: 'layer',
  heat: 'none',
  all: false,
  open: [],
  hide: [],
};

const MAX_OPEN = 40;

// The last ones, and EVERY_GROUP in any case, because it changes the meaning of the others.
const limited = (open: readonly string[]): readonly string[] => [
  ...(open.includes(EVERY_GROUP) ? [EVERY_GROUP] : []),
  ...open.filter((key) => key !== EVERY_GROUP).slice(-MAX_OPEN),
];

export function encodeGraph({ form, heat, all, open, hide }: GraphOptions): string {
  const parts: string[] = [];
  if (form !== defaultGraph.form) parts.push(form);
  if (heat !== defaultGraph.heat) parts.push(`heat:${heat}`);
  if (all) parts.push('all');
  if (open.length > 0) parts.push(`open:${limited(open).join('.')}`);
  if (hide.length > 0) parts.push(`hide:${hide.join('.')}`);
  return parts.join(',');
}

export function decodeGraph(text: string): GraphOptions {
  const parts = new Map(
    text.split(',').map((part): [string, string] => {
      const [key = '', value = ''] = part.split(':');
      return [key, value];
    }),
  );
  const list = (key: string): readonly string[] =>
    (parts.get(key) ?? '').split('.').filter(Boolean);
  return {
    form: FORMS.find((one) => parts.has(one)) ?? defaultGraph.form,
    heat: HEATS.find((one) => one === parts.get('heat')) ?? defaultGraph.heat,
    all: parts.has('all'),
    open: limited(list('open')),
    hide: CATEGORIES.map(({ category }) => category).filter((one) => list('hide').includes(one)),
  };
}
