// What the panel Values shows, in links "of:0:17,n:l_out-3,show:picture,at:3:40,cx:0:64". Pure functions.
import { wholeCamera } from '../../plane/camera';
import { optionParts, rangeText } from '../option_parts';
import type { OutputPlace } from './captured';
import type { PictureView } from '../weights/value_picture';

export const VIEWS = ['outputs', 'histogram', 'picture'] as const;
export type ValuesView = (typeof VIEWS)[number];

export const CELLS = {
  mean: { button: 'mean', ofOne: '', ofSeveral: 'mean' },
  max_abs: { button: 'max |value|', ofOne: 'absolute value', ofSeveral: 'largest absolute value' },
} as const;
export type CellsOf = keyof typeof CELLS;
export const ALL_CELLS = Object.keys(CELLS) as readonly CellsOf[];

export interface ValuesOptions extends PictureView {
  readonly of: OutputPlace | null; // null: none is chosen
  readonly show: ValuesView;
  readonly cells: CellsOf;
}

export const defaultValues: ValuesOptions = {
  of: null,
  show: 'outputs',
  cells: 'mean',
  at: null,
  camera: wholeCamera,
};

export const isSameOutput = (a: OutputPlace | null, b: OutputPlace): boolean =>
  a?.step === b.step && a.op === b.op && a.output === b.output;

// Of another output, everything is in view.
export const withOutput = (
  options: ValuesOptions,
  { step, op, output }: OutputPlace,
): ValuesOptions =>
  isSameOutput(options.of, { step, op, output })
    ? options
    : { ...options, of: { step, op, output }, at: null, camera: wholeCamera };

export function encodeValues({ of, show, cells, at, camera }: ValuesOptions): string {
  const parts: string[] = [];
  if (of) parts.push(`of:${of.step}:${of.op}`, `n:${encodeURIComponent(of.output)}`);
  if (show !== defaultValues.show) parts.push(`show:${show}`);
  if (cells !== defaultValues.cells) parts.push(`cells:${cells}`);
  if (at) parts.push(`at:${at.row}:${at.column}`);
  if (camera.x) parts.push(`cx:${rangeText(camera.x)}`);
  if (camera.ys[0]) parts.push(`cy0:${rangeText(camera.ys[0])}`);
  return parts.join(',');
}

export function decodeValues(text: string): ValuesOptions {
  const { name, oneOf, pair, range } = optionParts(text);
  const [of, output, at, y] = [pair('of'), name('n'), pair('at'), range('cy0')];
  return {
    of: of && output !== null ? { step: of[0], op: of[1], output } : null,
    show: oneOf('show', VIEWS, defaultValues.show),
    cells: oneOf('cells', ALL_CELLS, defaultValues.cells),
    at: at && { row: at[0], column: at[1] },
    camera: { x: range('cx'), ys: y ? [y] : [] },
  };
}
