// The URL hash of a view:
//
//   #1&session=ID&with=ID&ph=g&step=12&l=5&sel=o:ffn_out-5&cmp=k:9&full=graph&tab=graph,steps
//     &embed=map&r=token:20:48,layer:3:7&speed=0.001&loop=1&q=op:mul_mat&o.table=-duration_ns&f.graph=ffn
//     &w.graph=0:48&p.map=y:file,log
//
// The number is the version of the format. `f.`, `o.`, `w.` and `p.` are followed by the panel id
// and hold its filter, order, window and options, so a new panel needs no change here. Missing parts have their
// default. Invalid parts are ignored and reported. The hash never contains the prompt.
import { SPEEDS } from './speeds';
import { decodeSelection, encodeSelection } from './selection';
import {
  emptyView,
  type AxisRange,
  type PhaseFilter,
  type RangeFilter,
  type View,
  type Window,
} from './view';

const VERSION = '1';
const PHASES: Readonly<Record<string, PhaseFilter>> = { p: 'prompt', g: 'generate' };
const SESSION = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/; // same pattern as in openapi.yaml
const MAX_FILTER_LENGTH = 400;
const MAX_SEARCH_LENGTH = 4000; // of a panel: also an SQL statement
const OPTIONS = /^[a-z0-9_]+(:[a-z0-9_.:-]+)?(,[a-z0-9_]+(:[a-z0-9_.:-]+)?){0,30}$/;

// The ids of all panels.
export type KnownPanels = ReadonlySet<string>;

export interface ParsedHash {
  readonly view: View;
  readonly invalid: readonly string[]; // invalid parts
}

// `name`: of the output of the selected op or node.
export function toHash(view: View, name: string | null = null): string {
  const parts: string[] = [VERSION];
  const put = (key: string, value: string): number =>
    parts.push(`${key}=${encodeURIComponent(value).replace(/%(3A|2C)/g, decodeURIComponent)}`);
  if (view.session !== null) put('session', view.session);
  if (view.other !== null) put('with', view.other);
  if (view.phase !== 'all') put('ph', view.phase.slice(0, 1));
  if (view.step !== null) put('step', String(view.step));
  if (view.layer !== 0) put('l', String(view.layer));
  if (view.selection) put('sel', encodeSelection(view.selection, name));
  if (view.compared) put('cmp', encodeSelection(view.compared));
  if (view.full !== null) put('full', view.full);
  if (view.embed !== null) put('embed', view.embed);
  if (view.tabs.length > 0) put('tab', view.tabs.join(','));
  if (view.range) put('r', rangeText(view.range));
  if (view.speed !== null) put('speed', String(view.speed));
  if (view.loop) put('loop', '1');
  if (view.filter !== '') put('q', view.filter);
  for (const [panel, options] of Object.entries(view.options)) put(`p.${panel}`, options);
  for (const [panel, filter] of Object.entries(view.filters)) put(`f.${panel}`, filter);
  for (const [panel, sort] of Object.entries(view.sorts)) put(`o.${panel}`, sort);
  for (const [panel, window] of Object.entries(view.windows)) {
    put(`w.${panel}`, window.map(shortNumber).join(':'));
  }
  return parts.length === 1 ? '' : `#${parts.join('&')}`;
}

export function fromHash(hash: string, panels: KnownPanels): ParsedHash {
  const text = hash.replace(/^#/, '');
  if (text === '') return { view: emptyView, invalid: [] };
  const [version, ...parts] = text.split('&');
  if (version !== VERSION) return { view: emptyView, invalid: [`version “${version ?? ''}”`] };
  let view = emptyView;
  const invalid: string[] = [];
  for (const part of parts) {
    const next = part === '' ? view : withPart(view, part, panels);
    if (next) view = next;
    else invalid.push(truncated(part));
  }
  return { view, invalid };
}

// Returns null for an invalid part.
function withPart(view: View, part: string, panels: KnownPanels): View | null {
  const at = part.indexOf('=');
  const key = part.slice(0, Math.max(0, at));
  const value = decoded(part.slice(at + 1));
  if (at < 0 || value === null) return null;
  const panel = key.slice(2);
  switch (key) {
    case 'session':
      return SESSION.test(value) ? { ...view, session: value } : null;
    case 'with':
      return SESSION.test(value) ? { ...view, other: value } : null;
    case 'ph':
      return PHASES[value] ? { ...view, phase: PHASES[value] } : null;
    case 'step':
      return isCount(value) ? { ...view, step: Number(value) } : null;
    case 'l':
      return isCount(value) ? { ...view, layer: Number(value) } : null;
    case 'sel': {
      const selection = decodeSelection(value);
      return selection && { ...view, selection };
    }
    case 'cmp': {
      const compared = decodeSelection(value);
      return compared?.kind === 'token' || compared?.kind === 'layer'
        ? { ...view, compared }
        : null;
    }
    case 'r': {
      const range = rangeOf(value);
      return range && { ...view, range };
    }
    case 'speed':
      return SPEEDS.some((known) => String(known) === value)
        ? { ...view, speed: Number(value) }
        : null;
    case 'loop':
      return value === '1' ? { ...view, loop: true } : null;
    case 'q':
      return value.length > MAX_FILTER_LENGTH ? null : { ...view, filter: value };
    case 'full':
      return panels.has(value) ? { ...view, full: value } : null;
    case 'embed':
      return panels.has(value) ? { ...view, embed: value } : null;
    case 'tab': {
      const ids = value.split(',');
      if (!ids.every((id) => panels.has(id))) return null;
      return { ...view, tabs: [...new Set(ids)] };
    }
    default:
      if (!panels.has(panel)) return null;
  }
  switch (key.slice(0, 2)) {
    case 'f.':
      return value.length > MAX_SEARCH_LENGTH
        ? null
        : { ...view, filters: { ...view.filters, [panel]: value } };
    case 'o.':
      return /^-?[a-z_]{1,40}$/.test(value)
        ? { ...view, sorts: { ...view.sorts, [panel]: value } }
        : null;
    case 'p.':
      return OPTIONS.test(value) ? { ...view, options: { ...view.options, [panel]: value } } : null;
    case 'w.': {
      const window = windowOf(value);
      return window && { ...view, windows: { ...view.windows, [panel]: window } };
    }
    default:
      return null;
  }
}

const isCount = (text: string): boolean => /^\d{1,9}$/.test(text);

function windowOf(text: string): Window | null {
  const numbers = text.split(':').map(Number);
  const [x0 = NaN, x1 = NaN, y0 = 0, y1 = 1] = numbers;
  const pairs = numbers.length === 2 || numbers.length === 4;
  return pairs && numbers.every(Number.isFinite) && x0 < x1 && y0 < y1 ? numbers : null;
}

// x:from:to,y:from:to; a missing axis is empty.
function rangeText({ x, y }: RangeFilter): string {
  const part = (one: AxisRange | null): string =>
    one ? [one.axis, shortNumber(one.from), shortNumber(one.to)].join(':') : '';
  return y ? `${part(x)},${part(y)}` : part(x);
}

function rangeOf(text: string): RangeFilter | null {
  const [x = '', y = '', ...more] = text.split(',');
  const part = (one: string): AxisRange | null | undefined => {
    if (one === '') return null;
    const match = /^([a-z_]{1,20}):(\d{1,16}):(\d{1,16})$/.exec(one);
    const [from, to] = [Number(match?.[2]), Number(match?.[3])];
    return match && from < to ? { axis: match[1] ?? '', from, to } : undefined;
  };
  const [left, right] = [part(x), part(y)];
  if (left === undefined || right === undefined || more.length > 0) return null;
  return left || right ? { x: left, y: right } : null;
}

const shortNumber = (n: number): string => String(Math.round(n * 1000) / 1000);

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const truncated = (part: string): string => (part.length > 40 ? `${part.slice(0, 40)}…` : part);
