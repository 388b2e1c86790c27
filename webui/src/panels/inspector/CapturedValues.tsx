// The captured values of an op in the selected step: what they are, and a way to their picture.
import { useMemo } from 'preact/hooks';
import { formatBytes, formatShape } from '../../format';
import type { CapturedOutputs } from '../../net/types';
import { Resource } from '../../state/resource';
import { usePart, useResource } from '../../ui/hooks';
import { FailedLoad } from '../../ui/States';
import { askCaptured, FIGURES, hasCapture, isArray, type OutputPlace } from '../values/captured';
import { defaultValues, encodeValues } from '../values/values_options';
import { shortText } from '../weights/value_text';
import type { DetailsProps } from './InspectionView';

export function CapturedValues({ store, session, op }: DetailsProps & { op: number }) {
  const resource = useMemo(
    () =>
      new Resource<CapturedOutputs>({
        key: () => {
          const step = session.step.value;
          return store.has('values') && hasCapture(session) && step !== null && session.hasStep.value ? String(step) : null;
        },
        load: () => askCaptured(session, session.step.peek()),
        reconnects: session.context.reconnects,
        cacheSize: 32,
      }),
    [store, session],
  );
  const { value, error } = useResource(resource);
  const isCapturing = usePart(() => hasCapture(session));
  if (!isCapturing || !store.has('values')) return null;
  if (error) return <FailedLoad what="The captured values cannot be listed." resource={resource} />; // prettier-ignore
  const rows = value?.rows.filter((row) => row.op === op) ?? [];
  if (rows.length === 0) return null;
  const show = (of: OutputPlace): void => {
    const { step, op: number, output } = of;
    const text = encodeValues({ ...defaultValues, of: { step, op: number, output }, show: 'picture' }); // prettier-ignore
    store.reveal('values');
    store.navigation.setOptions('values', text, 'push');
  };
  return (
    <section class="links" aria-label="Captured values">
      <h3>
        Captured values <span class="dim">{rows.length}</span>
      </h3>
      {rows.map((row) => (
        <div key={row.output} class="captured">
          <p>
            <span class="mono">{row.output}</span>{' '}
            <span class="dim">
              {row.part}, {formatShape(row.shape)}, {formatBytes(row.bytes)}
            </span>
          </p>
          <p class="dim">
            {FIGURES.flatMap((key) => (row[key] === null ? [] : [`${key} ${shortText(row[key])}`])).join(', ')}
            {row.nan > 0 && <span class="bad"> {row.nan} NaN</span>}
            {row.inf > 0 && <span class="bad"> {row.inf} Inf</span>}
          </p>
          {isArray(row) && (
            <button
              type="button"
              class="small"
              title="Show the values as a picture"
              onClick={() => {
                show(row);
              }}
            >
              Values
            </button>
          )}
        </div>
      ))}
    </section>
  );
} // prettier-ignore
