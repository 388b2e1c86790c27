// What the page looks at: everything that a link must bring back, and nothing
// else. Prompts are no part of it.
import type { Selection } from './selection';

export type PhaseFilter = 'all' | 'prompt' | 'generate';

// Part of a panel's plane: x0, x1 and, where it has two directions, y0, y1, in
// the panel's own units.
export type Window = readonly number[];

export interface View {
  readonly session: string | null;
  readonly phase: PhaseFilter;
  readonly step: number | null; // null: the newest one
  readonly layer: number; // that the layer graph shows
  readonly selection: Selection | null;
  readonly full: string | null; // the panel that fills the page
  readonly tabs: Readonly<Record<string, string>>; // shown panel by place, where not the first
  readonly filters: Readonly<Record<string, string>>; // by panel
  readonly sorts: Readonly<Record<string, string>>; // by panel: column, or -column
  readonly windows: Readonly<Record<string, Window>>; // by panel; absent: all
}

export const emptyView: View = {
  session: null,
  phase: 'all',
  step: null,
  layer: 0,
  selection: null,
  full: null,
  tabs: {},
  filters: {},
  sorts: {},
  windows: {},
};

// Another session: what belonged to the one before is gone, how the panels
// stand and what they filter stays.
export function atSession(view: View, session: string | null): View {
  if (view.session === session) return view;
  return {
    ...view,
    session,
    phase: 'all',
    step: null,
    layer: 0,
    selection: null,
    full: session === null ? null : view.full,
    windows: {},
  };
}

// Parts of a step are numbered in it: another step has other ones. Ops keep
// their number, since nearly all steps of a session have the same graph.
export function atStep(view: View, step: number | null): View {
  if (view.step === step) return view;
  const kept = view.selection?.kind === 'token' ? null : view.selection;
  return { ...view, step, selection: kept };
}

// One level back: full screen, then the selection. Null: there is none.
export function unwound(view: View): View | null {
  if (view.full !== null) return { ...view, full: null };
  return view.selection === null ? null : { ...view, selection: null };
}

// `key` without a value when it is null, as a record in a view holds it.
export function withKey<T>(
  record: Readonly<Record<string, T>>,
  key: string,
  value: T | null,
): Readonly<Record<string, T>> {
  const rest = Object.entries(record).filter(([name]) => name !== key);
  return Object.fromEntries(value === null ? rest : [...rest, [key, value]]);
}
