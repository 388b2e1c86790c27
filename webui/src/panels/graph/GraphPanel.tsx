// The graph of one layer of the selected step.
import { useMemo, useRef } from 'preact/hooks';
import { formatCount, plural } from '../../format';
import { findItems, sceneOf, type Scene } from '../../graph/scene';
import type { LayerSubgraph } from '../../net/types';
import { layerOf, templateOf } from '../../state/per_session';
import { IconButton } from '../../ui/Button';
import { useExact, usePart } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Empty, Failed, Loading } from '../../ui/States';
import type { SessionProps } from '../panel';
import { GraphCanvas } from './GraphCanvas';
import type { GraphChart } from './graph_chart';
import { NodeTable } from './NodeTable';

type ViewMode = 'graph' | 'list';

export function GraphPanel(props: SessionProps) {
  const { store, session, panel } = props;
  const form = usePart((): ViewMode =>
    store.navigation.view.value.options[panel] === 'list' ? 'list' : 'graph',
  );
  const chart = useRef<GraphChart | null>(null);
  const graph = useExact(layerOf(session));
  const template = templateOf(session).value;
  const layer = usePart(() => store.navigation.view.value.layer);
  const scene = useMemo(() => (graph.value ? sceneOf(graph.value) : null), [graph.value]);
  return (
    <>
      <div class="toolbar">
        <LayerStepper {...props} layer={layer} graph={graph.value} />
        <Search {...props} scene={scene} walk={(by) => chart.current?.focusResult(by)} />
        <span class="toolbar-end" />
        <Segmented
          label="Layer view"
          value={form}
          options={[
            { value: 'graph', text: 'Graph' },
            { value: 'list', text: 'Nodes', hint: 'The nodes as a table' },
          ]}
          choose={(value: ViewMode) => {
            store.navigation.setOptions(panel, value === 'list' ? 'list' : '', 'push');
          }}
        />
      </div>
      {scene ? (
        form === 'graph' ? (
          <GraphCanvas {...props} scene={scene} chart={chart} />
        ) : (
          <NodeTable store={store} session={session} panel={panel} scene={scene} />
        )
      ) : template === 0 ? (
        <Empty>The graph of this step was not recorded: the trace level was minimal.</Empty>
      ) : graph.error ? (
        <Failed
          what={`Layer ${layer} cannot be shown.`}
          error={graph.error}
          retry={() => {
            layerOf(session).reload();
          }}
        />
      ) : (
        <Loading>Loading layer {layer}…</Loading>
      )}
    </>
  );
}

function LayerStepper(props: SessionProps & { layer: number; graph: LayerSubgraph | null }) {
  const { store, session, layer, graph } = props;
  const layers = store.layers.value;
  const step = session.step.value;
  return (
    <span class="stepper">
      <IconButton
        icon="left"
        label="Previous layer"
        hint="{"
        disabled={layer === 0}
        onClick={() => {
          store.moveLayer(-1, false);
        }}
      />
      <b>layer {layer}</b>
      <IconButton
        icon="right"
        label="Next layer"
        hint="}"
        disabled={layer >= layers - 1}
        onClick={() => {
          store.moveLayer(1, false);
        }}
      />
      <span class="dim">
        step {step}
        {graph ? `, ${plural(graph.nodes.length, 'node')}` : ''}
      </span>
    </span>
  );
}

function Search(props: SessionProps & { scene: Scene | null; walk: (by: 1 | -1) => void }) {
  const { store, panel, scene, walk } = props;
  const query = usePart(() => store.navigation.view.value.filters[panel] ?? '');
  const hits = scene && query.trim() !== '' ? findItems(scene, query).size : null;
  return (
    <>
      <input
        id="search-graph"
        type="search"
        class="filter graph-search"
        aria-label="Search the layer’s nodes"
        placeholder="Search nodes"
        title="Searches name, op, label, role, component and type; all words must match. Enter goes to the next match."
        value={query}
        onInput={(event) => {
          store.navigation.setFilter(panel, event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault();
          walk(event.shiftKey ? -1 : 1);
        }}
      />
      {hits !== null && (
        <span class={hits === 0 ? 'warn' : 'dim'} role="status">
          {formatCount(hits)} found
        </span>
      )}
    </>
  );
}
