// How sequential the reads of the model files are, of the brushed range, else of what is in view.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { formatBytes } from '../../format';
import type { SequentialityQuery } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { filteredSums, sumQuery } from '../../state/view/range_query';
import { readOrderOf, readOrderText } from '../../state/view/read_order';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { rangeInView } from './map_range';
import type { MapModel } from './map_model';
import { DEFAULT_GAP } from './map_options';

export function FileOrder(props: { store: Store; session: OpenSession; model: MapModel }) {
  const { store, session, model } = props;
  const resource = useMemo(() => {
    const query = computed((): SequentialityQuery | null => {
      const options = model.options.value;
      const { phase, filter, range } = store.navigation.view.value;
      // The whole memory is not a picture of an order.
      if (options.y !== 'file' && (options.y !== 'memory' || !range)) return null;
      const layers = store.layers.value;
      const inView = range ? null : rangeInView(model.camera.value, options);
      if (inView && sumQuery(phase, inView, layers).honoured.length === 0) return null;
      const sums = filteredSums({ phase, filter, range: range ?? inView }, layers);
      return { ...sums.query, gap: options.gap };
    });
    return readOrderOf(session, query);
  }, [store, session, model]);
  const share = useResource(resource).value?.share ?? null;
  if (share === null) return null;
  return (
    <span class="file-order" role="status">
      <span title="Share of the bytes read of the model files whose read starts at most the gap after the end of the previous read; the rest is random">
        {readOrderText(share)}
      </span>
      <Gap model={model} />
    </span>
  );
}

const GAPS = [0, 4096, 65_536, DEFAULT_GAP, 1 << 20, 8 << 20];

// A link may have another gap.
function Gap({ model }: { model: MapModel }) {
  const { gap } = model.options.value;
  return (
    <label class="choice" title="The gap between two reads that still counts as sequential">
      <span>gap</span>
      <select
        aria-label="Gap of sequential reads"
        value={String(gap)}
        onChange={(event) => {
          model.change({ gap: Number(event.currentTarget.value) });
        }}
      >
        {[...new Set([...GAPS, gap])]
          .sort((a, b) => a - b)
          .map((bytes) => (
            <option key={bytes} value={String(bytes)}>
              {bytes === 0 ? 'none' : formatBytes(bytes)}
            </option>
          ))}
      </select>
    </label>
  );
}
