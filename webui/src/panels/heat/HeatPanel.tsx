// The heat map of tokens by layers; it grows during a run.
import { useMemo } from 'preact/hooks';
import { plural } from '../../format';
import { scaleOf } from '../../raster/heat';
import type { Metric } from '../../state/settings';
import { Segmented } from '../../ui/Segmented';
import { Empty } from '../../ui/States';
import type { SessionProps } from '../panel';
import { HeatMap } from './HeatMap';
import { Legend } from './Legend';

export function HeatPanel(props: SessionProps) {
  const { store, session } = props;
  const version = session.feed.version.value;
  const { metric, log } = store.settings.current.value;
  const scale = useMemo(() => scaleOf(session.data, metric, log), [session, version, metric, log]);
  return (
    <>
      <div class="toolbar">
        <span class="dim">
          {plural(session.data.tokens.length, 'token')},{' '}
          {plural(Math.max(0, session.data.rows() - 1), 'layer')}
        </span>
        <span class="toolbar-end" />
        {scale.max > 0 && <Legend scale={scale} metric={metric} />}
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
      {scale.max > 0 || session.active.value ? (
        <HeatMap {...props} scale={scale} />
      ) : (
        <Empty>No data per layer: the trace level was minimal, or the step times were lost.</Empty>
      )}
    </>
  );
}
