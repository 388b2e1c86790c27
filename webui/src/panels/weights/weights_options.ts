// What the Weights panel shows, in links "m:tiny,t:blk.0.attn_q.weight,show:picture,at:3:40,cx:0:64".
// Pure functions.
import { wholeCamera, type Camera } from '../../plane/layout';
import type { Range } from '../../plane/range';

export const VIEWS = ['tensors', 'errors', 'histogram', 'picture'] as const;
export type WeightsView = (typeof VIEWS)[number];

// What a cell is: on its button, of one value, and of several.
export const CELLS = {
  mean: { button: 'mean', ofOne: '', ofSeveral: 'mean' },
  max_abs: { button: 'max |value|', ofOne: '', ofSeveral: 'largest absolute value' },
  scale: { button: 'scale', ofOne: 'block scale', ofSeveral: 'mean block scale' },
  minimum: { button: 'minimum', ofOne: 'block minimum', ofSeveral: 'mean block minimum' },
} as const;
export type CellsOf = keyof typeof CELLS;
export const ALL_CELLS = Object.keys(CELLS) as readonly CellsOf[];

export interface Place {
  readonly row: number;
  readonly column: number;
}

export interface WeightsOptions {
  readonly model: string | null; // null: the current one
  readonly reference: string | null; // model that the errors are against; null: none is chosen
  readonly imatrix: string | null; // importance matrix that errors are weighed by; null: none
  readonly tensor: string | null; // null: none is chosen
  readonly show: WeightsView;
  readonly cells: CellsOf;
  readonly at: Place | null; // the selected value
  readonly camera: Camera;
}

export const defaultWeights: WeightsOptions = {
  model: null,
  reference: null,
  imatrix: null,
  tensor: null,
  show: 'tensors',
  cells: 'mean',
  at: null,
  camera: wholeCamera,
};

// Of another tensor, everything is in view.
export const withTensor = (options: WeightsOptions, tensor: string): WeightsOptions =>
  options.tensor === tensor ? options : { ...options, tensor, at: null, camera: wholeCamera };

// A part of the picture around a value, in which each cell is a value.
export const placeCamera = ({ row, column }: Place): Camera => ({
  x: { from: Math.max(0, column - 8), to: column + 40 },
  ys: [{ from: Math.max(0, row - 8), to: row + 9 }],
});

const rangeText = ({ from, to }: Range): string => `${Number(from.toFixed(3))}:${Number(to.toFixed(3))}`; // prettier-ignore

export function encodeWeights({
  model,
  reference,
  imatrix,
  tensor,
  show,
  cells,
  at,
  camera,
}: WeightsOptions): string {
  const parts: string[] = [];
  if (model !== null) parts.push(`m:${encodeURIComponent(model)}`);
  if (reference !== null) parts.push(`ref:${encodeURIComponent(reference)}`);
  if (imatrix !== null) parts.push(`im:${encodeURIComponent(imatrix)}`);
  if (tensor !== null) parts.push(`t:${encodeURIComponent(tensor)}`);
  if (show !== defaultWeights.show) parts.push(`show:${show}`);
  if (cells !== defaultWeights.cells) parts.push(`cells:${cells}`);
  if (at) parts.push(`at:${at.row}:${at.column}`);
  if (camera.x) parts.push(`cx:${rangeText(camera.x)}`);
  if (camera.ys[0]) parts.push(`cy0:${rangeText(camera.ys[0])}`);
  return parts.join(',');
}

export function decodeWeights(text: string): WeightsOptions {
  const parts = new Map(
    text.split(',').map((part): [string, string] => {
      const at = part.indexOf(':');
      return [part.slice(0, at), part.slice(at + 1)];
    }),
  );
  const name = (key: string): string | null => {
    try {
      return decodeURIComponent(parts.get(key) ?? '') || null;
    } catch {
      return null; // not percent-encoded
    }
  };
  const oneOf = <T extends string>(key: string, known: readonly T[], other: T): T =>
    known.find((one) => one === parts.get(key)) ?? other;
  const numbers = (key: string): readonly [number, number] | null => {
    const [a = NaN, b = NaN, ...more] = (parts.get(key) ?? '').split(':').map(Number);
    return more.length === 0 && a >= 0 && b >= 0 && Math.max(a, b) < 2 ** 53 ? [a, b] : null;
  };
  const range = (key: string): Range | null => {
    const found = numbers(key);
    return found && found[1] > found[0] ? { from: found[0], to: found[1] } : null;
  };
  const at = numbers('at');
  const y = range('cy0');
  return {
    model: name('m'),
    reference: name('ref'),
    imatrix: name('im'),
    tensor: name('t'),
    show: oneOf('show', VIEWS, defaultWeights.show),
    cells: oneOf('cells', ALL_CELLS, defaultWeights.cells),
    at: at?.every(Number.isInteger) ? { row: at[0], column: at[1] } : null,
    camera: { x: range('cx'), ys: y ? [y] : [] },
  };
}
