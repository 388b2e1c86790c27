// A bar chart of the panel, which can be saved as CSV.
import { useRef } from 'preact/hooks';
import '../../charts/charts.css';
import '../analytics/analytics.css';
import { ChartView } from '../../charts/ChartView';
import type { Scene } from '../../charts/scene';
import { csvOf, type ChartTable } from '../../charts/table';
import type { Store } from '../../state/store';
import { download } from '../../ui/download';

export function BarChart(props: {
  store: Store;
  title: string;
  counts?: string; // what the bars are, and over what
  text: string; // for screen readers
  file: string; // without .csv
  table: ChartTable;
}) {
  const { store, title, counts, text, file, table } = props;
  const scene = useRef<Scene | null>(null);
  return (
    <section class="chart-card" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {counts !== undefined && <span class="dim">{counts}</span>}
        <button
          type="button"
          class="link"
          onClick={() => {
            download(`${file}.csv`, new Blob([csvOf(table)], { type: 'text/csv' }));
          }}
        >
          Save as CSV
        </button>
      </header>
      <ChartView
        label={text}
        table={table}
        kind="bar"
        height={190}
        theme={store.theme.value}
        selected={null}
        range={null}
        scene={scene}
        pick={() => undefined}
      />
    </section>
  );
}
