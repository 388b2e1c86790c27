// Below the memory map: what the lanes mean, with the bytes of each state, or why there are none.
import { formatBytes } from '../../format';
import type { Store } from '../../state/store';
import type { MapModel } from './map_model';
import { residencyTotals, STATE_NAMES, type Weights, type WeightState } from './residency';

export function ResidencyLegend({ store, model }: { store: Store; model: MapModel }) {
  const residency = model.residency.value;
  if (!residency) return null;
  if (residency.is === 'known') return <States weights={residency.weights} step={residency.step} />;
  if (residency.is === 'loading') return null;
  const { model: of } = residency;
  return (
    <span class="map-residency">
      What is in memory now is shown while the model of this session is loaded.
      {of?.state === 'available' && (
        <button
          type="button"
          class="link"
          onClick={() => {
            void store.models.load(of);
          }}
        >
          Load {of.name}
        </button>
      )}
    </span>
  );
}

function States({ weights, step }: { weights: Weights; step: number | null }) {
  const { size, resident, copied, pinned, streamed } = residencyTotals(weights);
  const when = step === null ? 'now' : `before step ${step}`;
  const shown: readonly (readonly [WeightState, number])[] = [
    ...(pinned + streamed > 0
      ? [['pinned', pinned] as const, ['streamed', streamed] as const]
      : []),
    ...(resident === null || size === 0
      ? []
      : [['resident', resident] as const, ['missing', size - resident] as const]),
    ...(copied > 0 ? [['copied', copied] as const] : []),
  ];
  return (
    <ul class="map-residency" aria-label={`The weights ${when}`}>
      {step !== null && <li>{when}:</li>}
      {shown.map(([state, bytes]) => (
        <li key={state} data-state={state}>
          {STATE_NAMES[state]} {formatBytes(bytes)}
        </li>
      ))}
      {resident === null && (
        <li title="The kernel reports it only to users who may write the model file">
          in memory: not known
        </li>
      )}
    </ul>
  );
}
