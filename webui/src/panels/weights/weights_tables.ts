// The tensors of a model as rows of a table, and histograms as charts. Pure functions.
import type { ChartTable } from '../../charts/table';
import { exactBytes, formatBytes, formatCount, formatShape } from '../../format';
import type { Column, Sort } from '../../grid/column';
import { rowsText, type Cell } from '../../grid/copy';
import type { ErrorsOfTensor, WeightBins, WeightsErrors, WeightsOfTensor } from '../../net/types';
import { floatText, shortText } from './value_text';

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

// What the header of the file says of a tensor.
export type ListedTensor = Pick<WeightsOfTensor, 'name' | 'type' | 'shape' | 'layer' | 'component' | 'bytes'>; // prettier-ignore
type Tensor = ListedTensor | ErrorsOfTensor;
const NAME: Column<Tensor> = {
  key: 'name',
  title: 'tensor',
  width: 190,
  grow: 1,
  mono: true,
  text: ({ name }) => name,
};
const TYPE: Column<Tensor> = { key: 'type', title: 'type', width: 70, text: ({ type }) => type };
const SHAPE: Column<Tensor> = {
  key: 'shape',
  title: 'shape',
  width: 100,
  unsortable: true,
  text: ({ shape }) => formatShape(shape),
};
const LAYER: Column<Tensor> = {
  key: 'layer',
  title: 'layer',
  width: 60,
  align: 'right',
  text: ({ layer }) => (layer === null ? '' : String(layer)),
};
const COMPONENT: Column<Tensor> = {
  key: 'component',
  title: 'component',
  width: 90,
  text: ({ component }) => component,
};
const SIZE: Column<Tensor> = {
  key: 'bytes',
  title: 'size',
  width: 84,
  align: 'right',
  text: ({ bytes }) => formatBytes(bytes),
  exact: ({ bytes }) => exactBytes(bytes),
};

export const listColumns: readonly Column<ListedTensor>[] = [NAME, TYPE, SHAPE, LAYER, COMPONENT, SIZE]; // prettier-ignore

export const weightColumns: readonly Column<WeightsOfTensor>[] = [
  NAME,
  TYPE,
  SHAPE,
  LAYER,
  COMPONENT,
  SIZE,
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

type ErrorFigure =
  | 'relative_error'
  | 'predicted_error'
  | 'rmse'
  | 'cosine'
  | 'max_error'
  | 'error_per_byte'
  | 'reads';

const ERROR_FIGURES: readonly (readonly [ErrorFigure, string, string])[] = [
  ['relative_error', 'relative error', 'Root mean square of the error / that of the reference'],
  ['predicted_error', 'predicted', 'Relative error that was predicted for the type, from 64 rows of the reference'],
  ['rmse', 'RMSE', 'Root of the mean squared error, in the unit of the values'],
  ['cosine', 'cosine', 'Of the angle between the tensor and its reference; 1: the same direction'],
  ['max_error', 'max error', 'The largest difference of two values'],
  ['error_per_byte', 'error per MiB saved', 'The part of the squared relative error of the model that comes from this tensor, per MiB that it is smaller than in the reference: the tensors with the smallest figures may be smaller'],
  ['reads', 'reads', 'How often the session read the tensor'],
]; // prettier-ignore

const errorText = (figure: ErrorFigure, value: number): string =>
  figure === 'relative_error' || figure === 'predicted_error'
    ? percentText(value)
    : figure === 'cosine'
      ? value.toFixed(6)
      : shortText(figure === 'error_per_byte' ? value * 2 ** 20 : value);

const exactText = (figure: ErrorFigure, value: number): string =>
  figure === 'error_per_byte' ? `${floatText(value)} per byte` : floatText(value);

export const percentText = (value: number): string => `${shortText(100 * value)} %`;

export const errorColumns: readonly Column<ErrorsOfTensor>[] = [
  NAME,
  TYPE,
  { key: 'reference_type', title: 'reference', hint: 'Type of the tensor in the reference', width: 84, text: ({ reference_type }) => reference_type ?? '' },
  LAYER,
  COMPONENT,
  SIZE,
  ...ERROR_FIGURES.map(([figure, title, hint]): Column<ErrorsOfTensor> => ({
    key: figure,
    title,
    hint,
    width: 96,
    align: 'right',
    text: (row) => {
      const value = row[figure] ?? null;
      return value === null ? '' : errorText(figure, value);
    },
    exact: (row) => {
      const value = row[figure] ?? null;
      return row.error ?? (value === null ? '' : exactText(figure, value));
    },
  })),
]; // prettier-ignore

// What lost most is first.
export const WORST_FIRST: Sort = { key: 'relative_error', descending: true };

// A new column begins with what stands out.
export const GREATEST_FIRST: readonly string[] = ['bytes', 'max', 'std', 'rms', ...COUNTS, 'relative_error', 'predicted_error', 'rmse', 'max_error', 'reads']; // prettier-ignore

// The order of a table with these columns; `before`: while no column of it was chosen.
export const orderOf = <Row>(columns: readonly Column<Row>[], sort: Sort, before: Sort | null): Sort | null =>
  columns.some(({ key }) => key === sort.key) ? sort : before; // prettier-ignore

// Rows of the columns above, or of those below.
export function sortedWeights<Row extends ListedTensor | ErrorsOfTensor>(rows: readonly Row[], { key, descending }: Sort): readonly Row[] {
  const of = (row: Row): string | number | null | undefined =>
    row[key as keyof Row] as string | number | null | undefined;
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

export const errorsCsv = (rows: readonly ErrorsOfTensor[]): string => {
  const figures = ERROR_FIGURES.map(([figure]) => figure);
  return rowsText(
    'CSV',
    ['name', 'type', 'reference_type', 'layer', 'component', 'bytes', 'bytes_saved', ...figures],
    rows.map((row): Cell[] => [
      row.name,
      row.type,
      row.reference_type,
      row.layer,
      row.component,
      row.bytes,
      row.bytes_saved,
      ...figures.map((figure) => row[figure] ?? null),
    ]),
  );
};

// The tensor that lost most; null: none could be compared.
export const worstOf = (rows: readonly ErrorsOfTensor[]): ErrorsOfTensor | null => {
  const [first] = sortedWeights(rows, WORST_FIRST);
  return first?.relative_error === undefined ? null : first;
};

export const layerErrors = ({ layers }: WeightsErrors): ChartTable => ({
  key: { name: 'layer', of: 'layer' },
  keys: layers.map(({ layer }) => layer ?? 'outside'),
  series: errorSeries(layers),
});

export const componentErrors = ({ components }: WeightsErrors): ChartTable => ({
  key: { name: 'component', of: 'component' },
  keys: components.map(({ component }) => component),
  series: errorSeries(components),
});

const errorSeries = (
  sums: readonly { readonly relative_error: number }[],
): ChartTable['series'] => [
  {
    name: 'relative error',
    unit: 'share',
    values: sums.map(({ relative_error }) => relative_error),
  },
];

export const binsTable = (name: string, bins: WeightBins): ChartTable => ({
  key: { name: 'from', of: 'number' },
  keys: bins.map(({ from }) => from),
  labels: bins.map(({ from, to }) => `${shortText(from)} to ${shortText(to)}`),
  ticks: bins.map(({ from }) => shortText(from)),
  series: [{ name, unit: 'count', values: bins.map(({ count }) => Math.round(count)) }],
});
