// The filter of all views. A filter is a list of words that must all match:
//
//   attn_q            the name of an op or a tensor contains it; * and ? are wildcards
//   layer:2-5,none    one of the values; numbers may be ranges, none: no layer
//   -kind:kv          excludes
//
// A word becomes a condition of each view's own source: of ops on the page, of SQL, of the REST
// routes that sum. What a source cannot express is returned, and the view says so. Pure functions.
import type { GraphNode, Kernel, Op } from '../../net/types';
import type { SumQuery } from './sum_query';

export const FILTER_KEYS = {
  op: 'op type, or the name of its output',
  tensor: 'name of a tensor that is read or written',
  layer: 'layer number, range, or none',
  component: 'part of the model',
  role: 'purpose inside the component',
  kind: 'weight, kv, intermediate or input',
  source: 'where the bytes are: disk, repacked, kv, ...',
  type: 'data type of the tensor',
  device: 'device that ran the op',
  kernel: 'implementation that ran the op: plain, repacked, ...',
  expert: 'number of a routed expert',
  access: 'read or write',
  phase: 'prompt or generate',
  step: 'number or range of steps',
  token: 'number or range of tokens',
  verdict: 'what the machine did to the step: clean, contended, throttled or disk',
  n: 'index of the op in its step',
} as const;
export type FilterKey = keyof typeof FILTER_KEYS;

export interface Term {
  readonly key: FilterKey | null; // null: a word without a key
  readonly values: readonly string[]; // lower case; one of them matches
  readonly not: boolean;
  readonly text: string; // as typed
}

const NUMBERS: ReadonlySet<FilterKey | null> = new Set([
  'layer',
  'expert',
  'step',
  'token',
  'n',
] as const);
// The value must be equal, else it is a pattern.
const WORDS: ReadonlySet<FilterKey | null> = new Set([
  'kind',
  'source',
  'access',
  'phase',
  'component',
  'verdict',
  'kernel',
] as const);

const isKey = (text: string): text is FilterKey => Object.hasOwn(FILTER_KEYS, text);

export function parseFilter(filter: string): readonly Term[] {
  return filter.split(/\s+/).flatMap((word): readonly Term[] => {
    const not = word.startsWith('-');
    const rest = (not ? word.slice(1) : word).toLowerCase();
    const colon = rest.indexOf(':');
    const name = rest.slice(0, Math.max(0, colon));
    // "blk" in "blk:0" is not a key: search the whole word.
    const key = isKey(name) ? name : null;
    const values = (key === null ? [rest] : rest.slice(colon + 1).split(',')).filter(Boolean);
    return values.length === 0 ? [] : [{ key, values, not, text: word }];
  });
}

export interface UnknownKey {
  readonly key: string; // as typed
  readonly meant: FilterKey | null;
}

// The key of a word that is none of the filter's, with the one that it is close to; null: it has none,
// or it has one of the filter's.
export function unknownKey(word: string): UnknownKey | null {
  const key = /^-?([a-z_]+):/i.exec(word)?.[1]?.toLowerCase() ?? '';
  if (key === '' || isKey(key)) return null;
  const near = Object.keys(FILTER_KEYS)
    .filter(isKey)
    .map((one) => ({ one, edits: one.startsWith(key) ? 0 : editsBetween(key, one) }))
    .filter(({ one, edits }) => edits <= Math.min(2, one.length - 2))
    .sort((a, b) => a.edits - b.edits);
  return { key, meant: near[0]?.one ?? null };
}

// The number of letters to insert, delete or replace.
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  Array.from(a).forEach((letter, i) => {
    const next = [i + 1];
    Array.from(b).forEach((other, j) => {
      const same = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(same, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    });
    row = next;
  });
  return row.at(-1) ?? 0;
}

// "layer:2" for the words "layer 2"; null: no key is followed by a value.
export function meantFilter(words: readonly string[]): string | null {
  const found = words.flatMap((word, i) => {
    const value = words[i + 1] ?? '';
    return isKey(word) && value !== '' && !value.includes(':') && !isKey(value)
      ? [`${word}:${value}`]
      : [];
  });
  return found.length > 0 ? found.join(' ') : null;
}

// The filter with a word added, or without it if it is there.
export function toggleWord(filter: string, word: string): string {
  const words = filter.split(/\s+/).filter(Boolean);
  const kept = words.filter((one) => one !== word);
  return (kept.length < words.length ? kept : [...words, word]).join(' ');
}

// ---- Values ---------------------------------------------------------------------------

interface Bounds {
  readonly from: number;
  readonly to: number; // inclusive
}

// "3", "2-5"; null for none, undefined for anything else.
function boundsOf(value: string): Bounds | null | undefined {
  if (value === 'none' || value === 'outside') return null;
  const match = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(value);
  if (!match) return undefined;
  const from = Number(match[1]);
  return { from, to: match[2] === undefined ? from : Number(match[2]) };
}

// Whether `text` contains the pattern; * matches any characters, ? one.
export function contains(text: string, pattern: string): boolean {
  const lower = text.toLowerCase();
  if (!/[*?]/.test(pattern)) return lower.includes(pattern);
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(escaped.replaceAll('*', '.*').replaceAll('?', '.')).test(lower);
}

function hasNumber(number: number | null, value: string): boolean {
  const bounds = boundsOf(value);
  if (bounds === undefined) return false;
  if (bounds === null || number === null) return bounds === null && number === null;
  return number >= bounds.from && number <= bounds.to;
}

// ---- Ops ------------------------------------------------------------------------------

// The keys that ops on the page can be filtered by.
const OP_KEYS: ReadonlySet<FilterKey | null> = new Set([
  null, 'op', 'tensor', 'layer', 'component', 'role', 'kind', 'source', 'type', 'device', 'kernel', 'phase', 'step', 'token', 'n',
] as const); // prettier-ignore

export function filterOps(
  ops: readonly Op[],
  terms: readonly Term[],
): { readonly rows: readonly Op[]; readonly missing: readonly Term[] } {
  const used = terms.filter(({ key }) => OP_KEYS.has(key));
  const rows = used.length === 0 ? ops : ops.filter((op) => used.every((t) => opMatches(op, t)));
  return { rows, missing: terms.filter(({ key }) => !OP_KEYS.has(key)) };
}

function opMatches(op: Op, { key, values, not }: Term): boolean {
  return values.some((value) => opHas(op, key, value)) !== not;
}

function opHas(op: Op, key: FilterKey | null, value: string): boolean {
  const accessed = (): readonly string[] => [
    op.tensor_name,
    ...op.sources.map(({ tensor_name }) => tensor_name),
  ];
  switch (key) {
    case null:
      return [op.operation_type, ...accessed()].some((text) => contains(text, value));
    case 'op':
      return contains(op.operation_type, value) || contains(op.tensor_name, value);
    case 'tensor':
      return accessed().some((name) => contains(name, value));
    case 'layer':
      return hasNumber(op.op_layer_id, value);
    case 'component':
      return op.component === value;
    case 'role':
      return contains(op.role, value);
    case 'kind':
      return op.sources.some(({ tensor_kind }) => tensor_kind === value);
    case 'source':
      return op.sources.some(({ memory_source }) => memory_source === value);
    case 'type':
      return [op.tensor_type, ...op.sources.map((s) => s.tensor_type)].some((type) =>
        contains(type, value),
      );
    case 'device':
      return contains(op.device, value);
    case 'kernel':
      return op.kernel === value;
    case 'phase':
      return op.phase === value;
    case 'step':
      return hasNumber(op.step, value);
    case 'token':
      return hasNumber(op.token_id, value);
    case 'n':
      return hasNumber(op.op, value);
    default:
      return true;
  }
}

// ---- Nodes of the graph ---------------------------------------------------------------

const NODE_KEYS: ReadonlySet<FilterKey | null> = new Set([
  null, 'op', 'tensor', 'layer', 'component', 'role', 'kind', 'source', 'type', 'n',
] as const); // prettier-ignore

export const isNodeTerm = ({ key }: Term): boolean => NODE_KEYS.has(key);

export function nodeMatches(node: GraphNode, { key, values, not }: Term): boolean {
  const has = (value: string): boolean => {
    switch (key) {
      case null:
        return contains(`${node.op ?? ''} ${node.name}`, value);
      case 'op':
        return contains(node.op ?? '', value) || (node.op !== null && contains(node.name, value));
      case 'tensor':
        return contains(node.name, value);
      case 'layer':
        return hasNumber(node.layer, value);
      case 'component':
        return node.component === value;
      case 'role':
        return contains(node.role, value);
      case 'kind':
        return node.kind === value;
      case 'source':
        return node.source === value;
      case 'type':
        return contains(node.type, value);
      case 'n':
        return hasNumber(node.executed_op, value);
      default:
        return true;
    }
  };
  return values.some(has) !== not;
}

// ---- SQL ------------------------------------------------------------------------------

// The table access does not have the kernel, but an op has the same one in all steps of its template.
const KERNEL_OF_ACCESS = 'kernel of an access';
const opsOfKernel = (condition: string): string =>
  `(template, op) IN (SELECT template, op FROM op WHERE step IN (SELECT step FROM (SELECT step, max(ops_timed) FROM step GROUP BY template)) AND ${condition})`;

// Steps whose verdict was not recorded are as good as clean ones, as with clean=true of the routes.
const VERDICT = "coalesce(verdict, 'clean')";
const VERDICT_OF_STEP = 'verdict of the step';
const stepsOfVerdict = (value: string): string =>
  `step IN (SELECT step FROM step WHERE ${VERDICT} = ${quoted(value)})`;

type Columns = Readonly<Partial<Record<FilterKey, readonly string[]>>>;

// The columns of each table that a key is compared with. `layer` is the layer of the op, as in the
// sums of REST, so that accesses add up to the sums that other views show.
const SQL_COLUMNS: Readonly<Record<'access' | 'op' | 'step' | 'expert', Columns>> = {
  access: {
    op: ['operation_type'],
    tensor: ['tensor_name'],
    layer: ['op_layer_id'],
    component: ['component'],
    role: ['role'],
    kind: ['tensor_kind'],
    source: ['memory_source'],
    type: ['tensor_type'],
    device: ['device'],
    kernel: [KERNEL_OF_ACCESS],
    expert: ['expert_id'],
    access: ['write'],
    phase: ['phase'],
    step: ['step'],
    token: ['token_id'],
    verdict: [VERDICT_OF_STEP],
    n: ['op'],
  },
  op: {
    op: ['operation_type', 'tensor_name'],
    tensor: ['tensor_name'],
    layer: ['op_layer_id'],
    component: ['component'],
    role: ['role'],
    type: ['tensor_type'],
    device: ['device'],
    kernel: ['kernel'],
    phase: ['phase'],
    step: ['step'],
    token: ['token_id'],
    verdict: [VERDICT_OF_STEP],
    n: ['op'],
  },
  step: { phase: ['phase'], step: ['step'], token: ['token_id'], verdict: [VERDICT] },
  // The choices of the routers.
  expert: {
    layer: ['layer_id'],
    expert: ['expert_id'],
    phase: ['phase'],
    step: ['step'],
    token: ['token_id'],
    verdict: [VERDICT_OF_STEP],
  },
};

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export interface SqlFilter {
  readonly where: readonly string[]; // conditions, all of which must hold
  readonly missing: readonly Term[];
}

export function sqlFilter(table: keyof typeof SQL_COLUMNS, terms: readonly Term[]): SqlFilter {
  const columns = SQL_COLUMNS[table];
  const missing: Term[] = [];
  const where = terms.flatMap((term): readonly string[] => {
    const of =
      term.key === null
        ? [...(columns.op ?? []), ...(columns.tensor ?? [])]
        : (columns[term.key] ?? []);
    const tests = of.flatMap((column) => term.values.map((value) => test(term.key, column, value)));
    if (tests.length === 0) {
      missing.push(term);
      return [];
    }
    const any = tests.length === 1 ? (tests[0] ?? '') : `(${tests.join(' OR ')})`;
    return [term.not ? `coalesce(NOT ${any}, 1)` : any];
  });
  return { where, missing };
}

function test(key: FilterKey | null, column: string, value: string): string {
  if (key === 'access') return `${column} = ${value === 'write' ? 1 : 0}`;
  if (NUMBERS.has(key)) {
    const bounds = boundsOf(value);
    if (bounds === undefined) return '0';
    if (bounds === null) return `${column} IS NULL`;
    return bounds.from === bounds.to
      ? `${column} = ${bounds.from}`
      : `${column} BETWEEN ${bounds.from} AND ${bounds.to}`;
  }
  if (column === VERDICT_OF_STEP) return stepsOfVerdict(value);
  if (column === KERNEL_OF_ACCESS) return opsOfKernel(`kernel = ${quoted(value)}`);
  if (WORDS.has(key)) return `${column} = ${quoted(value)}`;
  const pattern = value
    .replace(/[\\%_]/g, '\\$&')
    .replaceAll('*', '%')
    .replaceAll('?', '_');
  return `${column} LIKE ${quoted(`%${pattern}%`)} ESCAPE '\\'`;
}

export const CLEAN_STEPS = 'verdict:clean';

// ---- REST -----------------------------------------------------------------------------

// Those that the routes know.
const KERNELS: ReadonlySet<string> = new Set<Kernel>([
  'plain',
  'repacked',
  'amx',
  'llamafile',
  'device',
]);

// What the routes that sum over accesses take as parameters: one value per key, not excluded, except
// for layers.
export function restFilter(
  terms: readonly Term[],
  layers: number,
): { readonly query: SumQuery; readonly missing: readonly Term[] } {
  const query: Record<string, string | number | boolean> = {};
  const missing: Term[] = [];
  for (const term of terms) {
    const { key, values, not } = term;
    const [value = ''] = values;
    const bounds = boundsOf(value);
    const isOne = values.length === 1 && !not;
    const text = key === 'layer' ? layersOf(term, layers) : null;
    // No layer of the model: nothing.
    if (key === 'layer' && text === '') query.from_step = query.to_step = 0;
    else if (key === 'layer' && text !== null && !('layers' in query)) query.layers = text;
    else if (isOne && key === 'verdict' && value === 'clean') query.clean = true;
    else if (isOne && key === 'kernel' && KERNELS.has(value) && !(key in query)) query[key] = value;
    else if (
      isOne &&
      (key === 'op' ||
        key === 'tensor' ||
        key === 'component' ||
        key === 'kind' ||
        key === 'source' ||
        key === 'phase') && // prettier-ignore
      !(key in query)
    )
      query[key] = value;
    else if (isOne && (key === 'step' || key === 'token') && bounds && !(`from_${key}` in query)) {
      query[`from_${key}`] = bounds.from;
      query[`to_${key}`] = bounds.to + 1;
    } else missing.push(term);
  }
  return { query, missing };
}

// The experts that the filter selects of its only layer, as rows; null: of several layers, or not a
// single range of numbers.
export function expertRows(
  terms: readonly Term[],
): { readonly from: number; readonly to: number } | null {
  const bounds = onlyLayer(terms) === null ? null : onlyBounds(terms, 'expert');
  return bounds && { from: bounds.from, to: bounds.to + 1 };
}

// The layer that the filter selects; null: none or several.
export function onlyLayer(terms: readonly Term[]): number | null {
  const bounds = onlyBounds(terms, 'layer');
  return bounds?.from === bounds?.to ? (bounds?.from ?? null) : null;
}

// The numbers of a key; null: not a single range.
function onlyBounds(terms: readonly Term[], of: FilterKey): Bounds | null {
  const [term, ...more] = terms.filter(({ key }) => key === of);
  const [value = '', ...others] = term?.values ?? [];
  if (!term || term.not || more.length + others.length > 0) return null;
  return boundsOf(value) ?? null;
}

// The words of the filter that exclude an expert or a layer.
export const excludes = (
  terms: readonly Term[],
  of: 'expert' | 'layer',
  number: number,
): readonly Term[] => terms.filter((term) => term.key === of && excludesNumber(term, number));

export const excludesNumber = ({ values, not }: Term, number: number): boolean =>
  values.some((value) => hasNumber(number, value)) === not;

function layersOf({ values, not }: Term, layers: number): string | null {
  const bounds = values.map(boundsOf);
  if (bounds.includes(undefined)) return null;
  if (!not) {
    const last = layers === 0 ? Infinity : layers - 1;
    return bounds
      .flatMap((b) => {
        if (!b) return ['outside'];
        const to = Math.min(b.to, last);
        return b.from > to ? [] : [b.from === to ? `${to}` : `${b.from}-${to}`];
      })
      .join(',');
  }
  if (layers === 0) return null;
  const rest = Array.from({ length: layers }, (_, i) => i)
    .filter((i) => !bounds.some((b) => b && i >= b.from && i <= b.to))
    .map(String);
  return [...rest, ...(bounds.includes(null) ? [] : ['outside'])].join(',');
}

// ---- Steps ----------------------------------------------------------------------------

export function stepMatches(
  step: { readonly step: number; readonly token_id: number; readonly token_count: number; readonly phase: string }, // prettier-ignore
  { key, values, not }: Term,
): boolean {
  const has = (value: string): boolean => {
    if (key === 'phase') return step.phase === value;
    if (key === 'step') return hasNumber(step.step, value);
    const bounds = boundsOf(value);
    return (
      key === 'token' &&
      bounds !== null &&
      bounds !== undefined &&
      step.token_id <= bounds.to &&
      step.token_id + step.token_count > bounds.from
    );
  };
  return values.some(has) !== not;
}

export const isStepTerm = ({ key }: Term): boolean =>
  key === 'phase' || key === 'step' || key === 'token';
