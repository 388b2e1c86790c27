// The view: exactly the state that a link restores. It does not contain prompts.
import { sameSelection, type Selection } from './selection';

export type PhaseFilter = 'all' | 'prompt' | 'generate';

// The visible range of a panel: x0, x1 and, if it has two axes, y0, y1, in the panel's units.
export type Window = readonly number[];

// A range on an axis of the map: positions, or indices of named rows; half-open.
export interface AxisRange {
  readonly axis: string;
  readonly from: number;
  readonly to: number;
}

// The part of the session that all views show: brushed in the map.
export interface RangeFilter {
  readonly x: AxisRange | null; // null: all
  readonly y: AxisRange | null;
}

// What a selection can be compared with.
export type Compared = Extract<Selection, { kind: 'token' | 'layer' }>;

export interface View {
  readonly session: string | null;
  readonly phase: PhaseFilter;
  readonly step: number | null; // null: the newest
  readonly layer: number; // the layer of the layer graph
  readonly selection: Selection | null;
  readonly compared: Compared | null; // what the selection is compared with, if of the same kind
  readonly other: string | null; // the session that this one is compared with
  readonly full: string | null; // the full-screen panel
  readonly embed: string | null; // the only panel, without the shell, for a frame of another page
  readonly tabs: readonly string[]; // panels selected in their docks; each other dock shows its first
  readonly filter: string; // of all views (filter.ts)
  readonly filters: Readonly<Record<string, string>>; // a panel's own search, by panel
  readonly sorts: Readonly<Record<string, string>>; // by panel: column, or -column
  readonly windows: Readonly<Record<string, Window>>; // by panel; absent: all
  readonly options: Readonly<Record<string, string>>; // by panel, in the panel's own form
  readonly range: RangeFilter | null;
  readonly speed: number | null; // of playback, 1: as fast as it ran; null: chosen when it starts
  readonly loop: boolean; // playback starts again at the end
}

export const emptyView: View = {
  session: null,
  phase: 'all',
  step: null,
  layer: 0,
  selection: null,
  compared: null,
  other: null,
  full: null,
  embed: null,
  tabs: [],
  filter: '',
  filters: {},
  sorts: {},
  windows: {},
  options: {},
  range: null,
  speed: null,
  loop: false,
};

// What is in view of the map, among its options.
const CAMERA = /(^|,)c[xy]\d?:[^,]*/g;

const withoutCameras = (options: View['options']): View['options'] =>
  Object.fromEntries(
    Object.entries(options).flatMap(([panel, text]) => {
      const rest = text.replace(CAMERA, '').replace(/^,/, '');
      return rest === '' ? [] : [[panel, rest]];
    }),
  );

// The view after opening another session, of which everything is in view. Keeps the phase, tabs,
// filters and sort orders, resets the rest.
export function withSession(view: View, session: string | null): View {
  if (view.session === session) return view;
  return {
    ...view,
    session,
    step: null,
    layer: 0,
    selection: null,
    compared: null,
    other: null,
    full: session === null ? null : view.full,
    windows: {},
    options: withoutCameras(view.options),
    range: null,
    speed: null,
  };
}

// The view after selecting another step. A selected token is cleared. A selected op is kept, since
// nearly all steps of a session have the same graph.
export function withStep(view: View, step: number | null): View {
  if (view.step === step) return view;
  const kept = view.selection?.kind === 'token' ? null : view.selection;
  return { ...view, step, selection: kept };
}

// What the selection is compared with; null: nothing.
export function comparedOf({
  selection,
  compared,
}: Pick<View, 'selection' | 'compared'>): Compared | null {
  return compared && compared.kind === selection?.kind && !sameSelection(selection, compared)
    ? compared
    : null;
}

// The view after Escape: exits full screen, else clears the range, else the comparison, else the
// selection, else the comparison with another session. Null: nothing to do.
export function afterEscape(view: View): View | null {
  if (view.full !== null) return { ...view, full: null };
  if (view.range !== null) return { ...view, range: null };
  if (comparedOf(view) !== null) return { ...view, compared: null };
  if (view.selection !== null) return { ...view, selection: null };
  return view.other === null ? null : { ...view, other: null };
}

// The record with `key` set to `value`, or without `key` if the value is null.
export function withKey<T>(
  record: Readonly<Record<string, T>>,
  key: string,
  value: T | null,
): Readonly<Record<string, T>> {
  const rest = Object.entries(record).filter(([name]) => name !== key);
  return Object.fromEntries(value === null ? rest : [...rest, [key, value]]);
}
