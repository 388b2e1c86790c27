// The tensors of a model as rows of a table, and histograms as charts. Pure functions.
import type { ChartTable } from '../../charts/table';
import { exactBytes, formatBytes, formatCount, formatShape } from '../../format';
import type { Column, Sort } from '../../grid/column';
import { rowsText, type Cell } from '../../grid/copy';
import type { WeightBins, WeightsOfTensor } from '../../net/types';
import { floatText, shortText } from './value_text';

type Key = 'name' | 'type' | 'layer' | 'component' | 'bytes' | Figure;
type Figure = 'min' | 'max' | 'mean' | 'std' | 'rms' | 'zeros' | 'outliers' | 'not_finite';

const FIGURES: readonly (readonly [Figure, string, string?])[] = [
  ['min', 'min'],
  ['max', 'max'],
  ['mean', 'mean'],
  ['std', 'std', 'Standard deviation'],
  ['rms', 'rms', 'Root mean square'],
  ['zeros', 'zeros', 'Number of values that are 0'],
  ['outliers', 'outliers', 'Values larger than 6 times the root mean square of their row'],
  ['not_finite', 'not finite', 'NaN and infinity, which no other figure includes'],
];
const COUNTS: readonly Figure[] = ['zeros', 'outliers', 'not_finite'];

const figureText = (figure: Figure, value: number): string =>
  COUNTS.includes(figure) ? formatCount(value) : shortText(value);

export const weightColumns: readonly Column<WeightsOfTensor>[] = [
  { key: 'name', title: 'tensor', width: 190, grow: 1, mono: true, text: ({ name }) => name },
  { key: 'type', title: 'type', width: 70, text: ({ type }) => type },
  { key: 'shape', title: 'shape', width: 100, unsortable: true, text: ({ shape }) => formatShape(shape) },
  { key: 'layer', title: 'layer', width: 60, align: 'right', text: ({ layer }) => (layer === null ? '' : String(layer)) },
  { key: 'component', title: 'component', width: 90, text: ({ component }) => component },
  { key: 'bytes', title: 'size', width: 84, align: 'right', text: ({ bytes }) => formatBytes(bytes), exact: ({ bytes }) => exactBytes(bytes) },
  ...FIGURES.map(([figure, title, hint]): Column<WeightsOfTensor> => ({
    key: figure,
    title,
    ...(hint === undefined ? {} : { hint }),
    width: 84,
    align: 'right',
    text: (row) => (row[figure] === undefined ? '' : figureText(figure, row[figure])),
    exact: (row) => row.error ?? (row[figure] === undefined ? '' : floatText(row[figure])),
  })),
]; // prettier-ignore

// A new column begins with what stands out.
export const GREATEST_FIRST: readonly string[] = ['bytes', 'max', 'std', 'rms', ...COUNTS];

export function sortedWeights(rows: readonly WeightsOfTensor[], { key, descending }: Sort): readonly WeightsOfTensor[] {
  const of = (row: WeightsOfTensor): string | number | null | undefined => row[key as Key];
  return rows.toSorted((a, b) => {
    const [x, y] = [of(a), of(b)];
    // Tensors without the figure are last in both orders.
    if (x === undefined || x === null || y === undefined || y === null)
      return Number(x === undefined || x === null) - Number(y === undefined || y === null);
    const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
    return descending ? -order : order;
  });
} // prettier-ignore

export const weightsCsv = (rows: readonly WeightsOfTensor[]): string => {
  const figures = FIGURES.map(([figure]) => figure);
  return rowsText(
    'CSV',
    ['name', 'type', 'shape', 'layer', 'component', 'bytes', 'count', ...figures],
    rows.map((row): Cell[] => [
      row.name,
      row.type,
      row.shape.join('x'),
      row.layer,
      row.component,
      row.bytes,
      row.count ?? null,
      ...figures.map((figure) => row[figure] ?? null),
    ]),
  );
};

export const binsTable = (name: string, bins: WeightBins): ChartTable => ({
  key: { name: 'from', of: 'number' },
  keys: bins.map(({ from }) => from),
  labels: bins.map(({ from, to }) => `${shortText(from)} to ${shortText(to)}`),
  series: [{ name, unit: 'count', values: bins.map(({ count }) => Math.round(count)) }],
});
