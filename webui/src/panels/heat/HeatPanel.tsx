// Token by layer as a heat map; it grows while the model runs.
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
  const { metric, log } = store.settings.chosen.value;
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
        <label class="toggle" title="Equal ratios get equal distances of colour">
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
        <Empty>
          What the layers did is not known: the trace was minimal, or the steps lost their times.
        </Empty>
      )}
    </>
  );
}
