// What the Weights panel shows, in links "m:tiny,t:blk.0.attn_q.weight,show:picture,at:3:40,cx:0:64".
// Pure functions.
import { wholeCamera, type Camera } from '../../plane/camera';
import { optionParts, rangeText, type Place } from '../option_parts';

export type { Place } from '../option_parts';

export const VIEWS = ['tensors', 'errors', 'histogram', 'picture'] as const;
export type WeightsView = (typeof VIEWS)[number];

// What a cell is: on its button, of one value, and of several.
export const CELLS = {
  mean: { button: 'mean', ofOne: '', ofSeveral: 'mean' },
  max_abs: { button: 'max |value|', ofOne: '', ofSeveral: 'largest absolute value' },
  scale: { button: 'scale', ofOne: 'block scale', ofSeveral: 'mean block scale' },
  minimum: { button: 'minimum', ofOne: 'block minimum', ofSeveral: 'mean block minimum' },
  super_scale: {
    button: 'super-block scale',
    ofOne: 'super-block scale',
    ofSeveral: 'mean super-block scale',
  },
  super_minimum: {
    button: 'super-block minimum',
    ofOne: 'super-block minimum',
    ofSeveral: 'mean super-block minimum',
  },
  scale_factor: {
    button: 'scale factor',
    ofOne: 'scale factor',
    ofSeveral: 'mean scale factor',
  },
  minimum_factor: {
    button: 'minimum factor',
    ofOne: 'minimum factor',
    ofSeveral: 'mean minimum factor',
  },
} as const;
export type CellsOf = keyof typeof CELLS;
export const ALL_CELLS = Object.keys(CELLS) as readonly CellsOf[];

export interface WeightsOptions {
  readonly model: string | null; // null: the current one
  readonly reference: string | null; // model that the errors are against; null: none is chosen
  readonly imatrix: string | null; // importance matrix that errors are weighed by; null: none
  readonly session: string | null; // whose reads errors are weighed by; null: none
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
  session: null,
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

export function encodeWeights({
  model,
  reference,
  imatrix,
  session,
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
  if (session !== null) parts.push(`reads:${encodeURIComponent(session)}`);
  if (tensor !== null) parts.push(`t:${encodeURIComponent(tensor)}`);
  if (show !== defaultWeights.show) parts.push(`show:${show}`);
  if (cells !== defaultWeights.cells) parts.push(`cells:${cells}`);
  if (at) parts.push(`at:${at.row}:${at.column}`);
  if (camera.x) parts.push(`cx:${rangeText(camera.x)}`);
  if (camera.ys[0]) parts.push(`cy0:${rangeText(camera.ys[0])}`);
  return parts.join(',');
}

export function decodeWeights(text: string): WeightsOptions {
  const { name, oneOf, pair, range } = optionParts(text);
  const at = pair('at');
  const y = range('cy0');
  return {
    model: name('m'),
    reference: name('ref'),
    imatrix: name('im'),
    session: name('reads'),
    tensor: name('t'),
    show: oneOf('show', VIEWS, defaultWeights.show),
    cells: oneOf('cells', ALL_CELLS, defaultWeights.cells),
    at: at && { row: at[0], column: at[1] },
    camera: { x: range('cx'), ys: y ? [y] : [] },
  };
}
