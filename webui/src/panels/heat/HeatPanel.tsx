// The heat map of tokens by layers; it grows during a run.
import { signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { plural } from '../../format';
import type { Scale } from '../../raster/heat';
import type { OpenSession } from '../../state/open_session';
import type { Metric } from '../../state/settings';
import { usePart } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Empty } from '../../ui/States';
import type { SessionProps } from '../panel';
import { HeatMap } from './HeatMap';
import { Legend } from './Legend';

export function HeatPanel(props: SessionProps) {
  const { store, session } = props;
  const { metric, log } = store.settings.current.value;
  const scale = useRef(signal<Scale>({ min: 0, max: 0, clips: false, log })).current;
  const hasLayers = usePart(() => {
    void session.feed.version.value;
    return session.data.stepTotals.withLayers > 0;
  });
  return (
    <>
      <div class="toolbar">
        <Size session={session} />
        <span class="toolbar-end" />
        <Legend scale={scale} metric={metric} />
        <Segmented
          label="Value"
          value={metric}
          options={[
            { value: 'ns', text: 'Time', hint: 'Time per token' },
            { value: 'bytes', text: 'Bytes', hint: 'Bytes read and written per token' },
          ]}
          choose={(value: Metric) => {
            store.settings.set({ metric: value });
          }}
        />
        <label class="toggle" title="Logarithmic colour scale">
          <input
            type="checkbox"
            checked={log}
            onChange={(event) => {
              store.settings.set({ log: event.currentTarget.checked });
            }}
          />
          log
        </label>
      </div>
      {hasLayers || session.active.value ? (
        <HeatMap {...props} scale={scale} />
      ) : (
        <Empty>No data per layer: the trace level was minimal, or the step times were lost.</Empty>
      )}
    </>
  );
}

function Size({ session }: { session: OpenSession }) {
  void session.feed.version.value;
  return (
    <span class="dim">
      {plural(session.data.tokens.length, 'token')},{' '}
      {plural(Math.max(0, session.data.rows() - 1), 'layer')}
    </span>
  );
}
