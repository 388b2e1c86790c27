// The values of a tensor as histograms, with those of its block scales and minima.
import { useMemo } from 'preact/hooks';
import { formatCount, formatShape, plural } from '../../format';
import type { TensorWeights, WeightBins } from '../../net/types';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { FailedLoad, Reading } from '../../ui/States';
import { BarChart } from './BarChart';
import { shortText } from './value_text';
import { binsTable } from './weights_tables';

export function HistogramView({ store, model, tensor }: { store: Store; model: string; tensor: string }) {
  const resource = useMemo(
    () =>
      new Resource<TensorWeights>({
        key: () => tensor,
        load: (signal, progress) => store.api.tensorWeights(model, tensor, { signal, progress }),
        reconnects: store.connection.reconnects,
      }),
    [store, model, tensor],
  );
  const { value, error } = useResource(resource);
  if (error)
    return (
      <FailedLoad what="The tensor cannot be read." resource={resource} />
    );
  if (!value) return <Reading what="Reading the tensor" resource={resource} />;
  const rows = value.largest_rows.slice(0, 5);
  return (
    <div class="weights-charts">
      <p class="weights-note">
        <b class="mono">{value.name}</b> {value.type} {formatShape(value.shape)}: {shortText(value.min)}{' '}
        to {shortText(value.max)}, mean {shortText(value.mean)}, std {shortText(value.std)},{' '}
        {plural(value.zeros, 'zero')}, {plural(value.outliers, 'outlier')},{' '}
        {formatCount(value.not_finite)} not finite. Quantiles:{' '}
        {value.quantiles.map(({ share, value: at }) => `${100 * share} % ${shortText(at)}`).join(', ')}. Rows with the largest root mean square:{' '}
        {rows.map(({ row, rms }) => `${row} (${shortText(rms)})`).join(', ')}.
      </p>
      <Chart store={store} title="Values" counts="number of values by value" file={`${model}-${tensor}`} bins={value.histogram} />
      <Chart store={store} title="Block scales" counts="number of blocks by scale" file={`${model}-${tensor}-scales`} bins={value.scales} />
      <Chart store={store} title="Block minima" counts="number of blocks by minimum" file={`${model}-${tensor}-minima`} bins={value.minima} />
    </div>
  );
} // prettier-ignore

function Chart(props: { store: Store; title: string; counts: string; file: string; bins: WeightBins | null }) {
  const { store, title, counts, file, bins } = props;
  const table = useMemo(() => bins && binsTable('values', bins), [bins]);
  return (
    table && <BarChart {...{ store, title, counts, file, table }} text={`${title}: histogram of ${table.keys.length} bins`} />
  );
} // prettier-ignore
