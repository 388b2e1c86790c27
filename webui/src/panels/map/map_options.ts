// The options of the map, and their form in links: "y:file,x:time,v:bytes,linear,p:heat". A missing
// or invalid part has its default, so every text gives a valid map. Pure functions.
import { PALETTES, type Palette } from '../../plane/colours';
import { wholeCamera, type Camera } from '../../plane/camera';
import type { ValueRange } from '../../plane/raster';
import type { Range } from '../../plane/range';

// memory: two tracks, the model files and the buffers.
export const Y_AXES = [
  'layer', 'component', 'tensor', 'expert', 'head', 'op_kind', 'op', 'kernel', 'source', 'memory', 'file',
  'buffer',
] as const; // prettier-ignore
export const X_AXES = ['step', 'token', 'time', 'layer', 'component', 'phase', 'all'] as const;
export const VALUES = [
  'time',
  'bytes',
  'accesses',
  'faults',
  'bytes_read',
  'bytes_written',
] as const;
export type YAxis = (typeof Y_AXES)[number];
export type XAxis = (typeof X_AXES)[number];
export type MapValue = (typeof VALUES)[number];

export interface MapOptions {
  readonly y: YAxis;
  readonly x: XAxis;
  readonly value: MapValue;
  readonly log: boolean;
  readonly palette: Palette;
  readonly shown: ValueRange; // chosen in the legend
  readonly table: boolean; // the rows as a table beside the picture
  readonly lens: boolean; // magnifies what is under the pointer
  readonly gap: number; // bytes between reads that count as sequential
}

// With what is in view, which changes with each movement.
export interface MapView extends MapOptions {
  readonly camera: Camera;
}

export const DEFAULT_GAP = 131_072;

export const defaultOptions: MapView = {
  y: 'layer',
  x: 'step',
  value: 'time',
  log: true,
  palette: 'viridis',
  shown: null,
  table: false,
  lens: false,
  gap: DEFAULT_GAP,
  camera: wholeCamera,
};

export interface Preset {
  readonly id: string;
  readonly title: string;
  readonly hint: string;
  readonly options: Pick<MapOptions, 'x' | 'y' | 'value'>;
  readonly experts?: true; // only for mixtures of experts
}

export const PRESETS: readonly Preset[] = [
  {
    id: 'layers',
    title: 'Step × layer',
    hint: 'What each step cost in each layer: the prompt is one step, each generated token another one',
    options: { x: 'step', y: 'layer', value: 'time' },
  },
  {
    id: 'tensors',
    title: 'Step × tensor',
    hint: 'What each step read and wrote of each tensor',
    options: { x: 'step', y: 'tensor', value: 'bytes' },
  },
  {
    id: 'experts',
    title: 'Step × expert',
    hint: 'Which experts each step used; the column “token” shows those of each prompt token',
    options: { x: 'step', y: 'expert', value: 'accesses' },
    experts: true,
  },
  {
    id: 'components',
    title: 'Layer × component',
    hint: 'Where in the model the bytes and the time go',
    options: { x: 'layer', y: 'component', value: 'time' },
  },
  {
    id: 'ops',
    title: 'Op × time',
    hint: 'Which op ran when; of a long session in the selected step first',
    options: { x: 'time', y: 'op', value: 'time' },
  },
  {
    id: 'reads',
    title: 'File × time',
    hint: 'Which bytes of the model file were read when: lines are sequential reads, clouds are random ones',
    options: { x: 'time', y: 'file', value: 'bytes' },
  },
  {
    id: 'memory',
    title: 'Memory',
    hint: 'How often each byte of the model file and of the buffers was read or written',
    options: { x: 'all', y: 'memory', value: 'bytes' },
  },
];

export const presetOf = ({ x, y }: MapOptions): Preset | undefined =>
  PRESETS.find(({ options }) => options.x === x && options.y === y);

// The options with other axes: ranges and limits of the old ones do not apply.
export const withAxes = (
  options: MapOptions,
  change: Partial<Pick<MapOptions, 'x' | 'y' | 'value'>>,
): MapView => ({ ...options, ...change, camera: wholeCamera, shown: null });

// Tracks of a Y axis, as axes of the server.
export const tracksOf = (y: YAxis): readonly Exclude<YAxis, 'memory'>[] =>
  y === 'memory' ? ['file', 'buffer'] : [y];

export function encodeOptions(options: MapView): string {
  const parts: string[] = [];
  const { y, x, value, palette, shown, camera } = options;
  if (y !== defaultOptions.y) parts.push(`y:${y}`);
  if (x !== defaultOptions.x) parts.push(`x:${x}`);
  if (value !== defaultOptions.value) parts.push(`v:${value}`);
  if (!options.log) parts.push('linear');
  if (palette !== defaultOptions.palette) parts.push(`p:${palette}`);
  if (shown) parts.push(`only:${shown.map(numberText).join(':')}`);
  if (options.table) parts.push('table');
  if (options.lens) parts.push('lens');
  if (options.gap !== DEFAULT_GAP) parts.push(`gap:${options.gap}`);
  if (camera.x) parts.push(`cx:${rangeText(camera.x)}`);
  camera.ys.forEach((range, i) => {
    if (range) parts.push(`cy${i}:${rangeText(range)}`);
  });
  return parts.join(',');
}

export function decodeOptions(text: string): MapView {
  const parts = new Map(
    text.split(',').map((part): [string, string] => {
      const at = part.indexOf(':');
      return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)];
    }),
  );
  const oneOf = <T extends string>(key: string, known: readonly T[], fallback: T): T =>
    known.find((one) => one === parts.get(key)) ?? fallback;
  const range = (key: string): Range | null => {
    const [from = NaN, to = NaN, ...more] = (parts.get(key) ?? '').split(':').map(Number);
    return more.length === 0 && from >= 0 && to > from && to < 2 ** 53 ? { from, to } : null;
  };
  const only = range('only');
  const gap = Number(parts.get('gap') ?? DEFAULT_GAP);
  const ys = [range('cy0'), range('cy1')];
  return {
    y: oneOf('y', Y_AXES, defaultOptions.y),
    x: oneOf('x', X_AXES, defaultOptions.x),
    value: oneOf('v', VALUES, defaultOptions.value),
    log: !parts.has('linear'),
    palette: oneOf('p', PALETTES, defaultOptions.palette),
    shown: only && [only.from, only.to],
    table: parts.has('table'),
    lens: parts.has('lens'),
    gap: Number.isSafeInteger(gap) && gap >= 0 ? gap : DEFAULT_GAP,
    camera: { x: range('cx'), ys: ys[1] ? ys : ys[0] ? [ys[0]] : [] },
  };
}

// Four digits, without an exponent: also in links.
const numberText = (n: number): string => {
  const text = String(Number(n.toPrecision(6)));
  return text.includes('e') ? n.toFixed(12).replace(/0+$/, '') : text;
};
const rangeText = ({ from, to }: Range): string =>
  [from, to].map((n) => String(Math.round(n * 1000) / 1000)).join(':');
