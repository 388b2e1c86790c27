// The graph of one layer of the selected step, or of the whole model.
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { formatCount, plural } from '../../format';
import {
  decodeGraph,
  HEAT_NAMES,
  HEATS,
  type GraphForm,
  type GraphOptions,
} from '../../graph/graph_options';
import { paintGraph } from '../../graph/paint';
import { graphSvg } from '../../graph/paint_svg';
import { findItems, sceneOf, type Scene } from '../../graph/scene';
import { groupKey, wholeGraph } from '../../graph/whole';
import { EVERY_GROUP } from '../../graph/graph_options';
import { layerOf, templateOf, wholeGraphOf } from '../../state/session/per_session';
import type { Loaded, Resource } from '../../state/resource';
import { isInRange } from '../../state/view/step_range';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { download } from '../../ui/download';
import { useExact, usePart, useResource } from '../../ui/hooks';
import { Menu, MenuItem } from '../../ui/Menu';
import { Segmented } from '../../ui/Segmented';
import { Empty, Failed, Loading } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import type { SessionProps } from '../panel';
import { GraphCanvas } from './GraphCanvas';
import { LayerStepper } from './LayerStepper';
import type { GraphChart } from './graph_chart';
import { graphValuesOf } from './graph_values';
import { NodeTable } from './NodeTable';
import { unusedOfGraph } from './node_filter';
import { setGraph } from './set_graph';

export function GraphPanel(props: SessionProps) {
  const { store, session, panel } = props;
  const options = useOptions(store, panel);
  const chart = useRef<GraphChart | null>(null);
  const template = templateOf(session).value;
  const isModel = options.form === 'model';
  const layer = usePart(() => store.navigation.view.value.layer);
  const loaded = useScene(props, options);
  const { scene } = loaded;
  const values = useMemo(() => graphValuesOf(store, session, panel), [store, session, panel]);
  const ignored = useResource(values).value?.missing ?? [];
  const unused = usePart(() =>
    unusedOfGraph(store.navigation.view.value, store.layers.value).join('\n'),
  );
  const isOutside = usePart(() => isStepOutside(store, session));
  const what = isModel ? 'The model' : `Layer ${layer}`;
  return (
    <>
      <div class="toolbar">
        <Segmented
          label="Graph of"
          value={options.form}
          options={FORM_NAMES}
          choose={(form: GraphForm) => {
            setGraph(store, panel, { ...options, form });
          }}
        />
        <LayerStepper store={store} layer={layer} />
        {isModel ? (
          <ModelTools store={store} panel={panel} options={options} layer={layer} />
        ) : (
          <Shown {...props} scene={scene} />
        )}
        <HeatTools store={store} panel={panel} options={options} />
        <Search {...props} scene={scene} chart={chart} />
        <span class="toolbar-end" />
        {isOutside && (
          <span class="warn" title="The graph is that of the selected step.">
            step {session.step.value} is not in the range
          </span>
        )}
        <Unused
          words={[
            ...new Set([
              ...unused.split('\n').filter(Boolean),
              ...(options.heat === 'none' ? [] : ignored),
            ]),
          ]}
        />
        {options.form !== 'list' && (
          <Export name={isModel ? 'model' : `layer-${layer}`} what={what} chart={chart} />
        )}
      </div>
      {scene ? (
        options.form === 'list' ? (
          <NodeTable store={store} session={session} panel={panel} scene={scene} />
        ) : (
          <GraphCanvas {...props} scene={scene} chart={chart} options={options} values={values} />
        )
      ) : template === 0 ? (
        <Empty>The graph of this step was not recorded: the level was minimal.</Empty>
      ) : loaded.error ? (
        <Failed what={`${what} cannot be shown.`} error={loaded.error} retry={loaded.retry} />
      ) : (
        <Loading>Loading {isModel ? 'the model' : `layer ${layer}`}…</Loading>
      )}
    </>
  );
}

const isStepOutside = (store: Store, { step, data, feed }: OpenSession): boolean => {
  void feed.version.value;
  const summary = step.value === null ? undefined : data.steps[step.value];
  return summary !== undefined && !isInRange(summary, store.navigation.view.value.range);
};

const FORM_NAMES: readonly { value: GraphForm; text: string; hint: string }[] = [
  { value: 'layer', text: 'Layer', hint: 'The operations of one layer' },
  { value: 'model', text: 'Model', hint: 'The whole model, a box per layer and component' },
  { value: 'list', text: 'Nodes', hint: 'The nodes of the layer as a table' },
];

const useOptions = (store: Store, panel: string): GraphOptions => {
  const text = usePart(() => store.navigation.view.value.options[panel] ?? '');
  return useMemo(() => decodeGraph(text), [text]);
};

function useScene({ store, session }: SessionProps, { form, open }: GraphOptions) {
  const isModel = form === 'model';
  // Playback passes through the layers: the graph of the last one stays until the next one is there.
  const layer = useExact(layerOf(session), store.playback.playing.value);
  const whole = useMaybe(wholeGraphOf(session), isModel);
  const opened = open.join('.');
  const scene = useMemo((): Scene | null => {
    if (!isModel) return layer.value ? sceneOf(layer.value) : null;
    if (!whole.value) return null;
    const graph = wholeGraph(whole.value, new Set(opened.split('.').filter(Boolean)));
    return sceneOf({ nodes: graph.nodes, edges: graph.edges, layer: -1 }, graph);
  }, [isModel, layer.value, whole.value, opened]);
  return {
    scene,
    error: (isModel ? whole : layer).error,
    retry: () => {
      if (isModel) wholeGraphOf(session).reload();
      else layerOf(session).reload();
    },
  };
}

// A resource that is loaded only while it is needed.
function useMaybe<T>(resource: Resource<T>, needed: boolean): Loaded<T> {
  useEffect(() => (needed ? resource.use() : undefined), [resource, needed]);
  return resource.state.value;
}

interface ToolProps {
  readonly store: Store;
  readonly panel: string;
  readonly options: GraphOptions;
}

function ModelTools({ store, panel, options, layer }: ToolProps & { layer: number }) {
  const { open } = options;
  const isWhole = open.includes(EVERY_GROUP);
  return (
    <>
      <span class="dim">double click or O opens a box</span>
      {open.length > 0 && (
        <button
          type="button"
          class="small"
          onClick={() => {
            setGraph(store, panel, { ...options, open: [] });
          }}
        >
          Close all
        </button>
      )}
      <button
        type="button"
        class="small"
        title="Open all boxes of the selected layer"
        onClick={() => {
          const parts = ['attention', 'ffn', 'moe', 'ssm', 'norm', 'kv-cache', 'other'];
          const keys = parts.map((part) => groupKey(layer, part));
          // The others of the whole model are those that are closed.
          const opened = isWhole
            ? open.filter((key) => !keys.includes(key))
            : [...new Set([...open, ...keys])];
          setGraph(store, panel, { ...options, open: opened });
        }}
      >
        Open layer {layer}
      </button>
      <button
        type="button"
        class="small"
        title="Open all boxes of the model"
        disabled={isWhole && open.length === 1}
        onClick={() => {
          setGraph(store, panel, { ...options, open: [EVERY_GROUP] });
        }}
      >
        Open all
      </button>
    </>
  );
}

function HeatTools({ store, panel, options }: ToolProps) {
  return (
    <>
      <label class="choice">
        <span>Colour</span>
        <select
          aria-label="Colour of the nodes"
          value={options.heat}
          onChange={(event) => {
            const heat = HEATS.find((one) => one === event.currentTarget.value) ?? 'none';
            setGraph(store, panel, { ...options, heat });
          }}
        >
          {HEATS.map((heat) => (
            <option key={heat} value={heat}>
              {HEAT_NAMES[heat]}
            </option>
          ))}
        </select>
      </label>
      {options.heat !== 'none' && (
        <Segmented
          label="Heat of"
          value={options.all ? 'session' : 'step'}
          options={[
            { value: 'step', text: 'Step', hint: 'Of the selected step' },
            { value: 'session', text: 'Session', hint: 'Of the phase and the brushed range' },
          ]}
          choose={(of) => {
            setGraph(store, panel, { ...options, all: of === 'session' });
          }}
        />
      )}
    </>
  );
}

const MAX_PNG = 12_000; // pixels of a side; browsers have a limit

function Export(props: { name: string; what: string; chart: { current: GraphChart | null } }) {
  const { name, what, chart } = props;
  const svg = (): void => {
    const picture = chart.current?.picture();
    if (!picture) return;
    const { drawn, marks, palette } = picture;
    const file = graphSvg(drawn, marks, palette, what);
    download(`${name}.svg`, new Blob([file], { type: 'image/svg+xml' }));
  };
  const png = (): void => {
    const picture = chart.current?.picture();
    if (!picture) return;
    const { drawn, marks, palette } = picture;
    const { width, height } = drawn.layout;
    const scale = Math.min(2, MAX_PNG / Math.max(width + 32, height + 32));
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil((width + 32) * scale);
    canvas.height = Math.ceil((height + 32) * scale);
    const ctx = canvas.getContext('2d');
    if (!ctx) return;
    const box = { w: canvas.width, h: canvas.height };
    paintGraph(ctx, box, drawn, { scale, left: 16 * scale, top: 16 * scale }, marks, palette);
    ctx.globalCompositeOperation = 'destination-over';
    ctx.fillStyle = palette.panel;
    ctx.fillRect(0, 0, box.w, box.h);
    canvas.toBlob((file) => {
      if (file) download(`${name}.png`, file);
    });
  };
  return (
    <Menu label="Export" title="Save the whole graph as a picture">
      {(
        [
          ['SVG', svg],
          ['PNG', png],
        ] as const
      ).map(([format, save]) => (
        <MenuItem
          key={format}
          run={() => {
            save();
          }}
        >
          Save as {format}
        </MenuItem>
      ))}
    </Menu>
  );
}

function Shown({ session, scene }: SessionProps & { scene: Scene | null }) {
  return (
    <span class="dim">
      step {session.step.value}
      {scene ? `, ${plural(scene.graph.nodes.length, 'node')}` : ''}
    </span>
  );
}

function Search(
  props: SessionProps & { scene: Scene | null; chart: { current: GraphChart | null } },
) {
  const { store, panel, scene, chart } = props;
  const query = usePart(() => store.navigation.view.value.filters[panel] ?? '');
  const hits = scene && query.trim() !== '' ? findItems(scene, query).size : null;
  const at = useSignal<number | null>(null); // index of the result that was gone to
  const go = (by: 1 | -1): void => {
    at.value = chart.current?.focusResult(by) ?? null;
  };
  return (
    <>
      <input
        id="search-graph"
        type="search"
        class="filter graph-search"
        aria-label="Search the layer’s nodes"
        placeholder="Find nodes"
        title="Searches name, op, label, role, component and type; all words must match. Enter goes to the next match."
        value={query}
        onInput={(event) => {
          at.value = null;
          store.navigation.setSearch(panel, event.currentTarget.value);
          chart.current?.revealResult();
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault();
          go(event.shiftKey ? -1 : 1);
        }}
      />
      {hits !== null && (
        <span class={hits === 0 ? 'warn' : 'dim'} role="status">
          {at.value !== null && at.value < hits
            ? `${formatCount(at.value + 1)} of ${formatCount(hits)}`
            : `${formatCount(hits)} found`}
        </span>
      )}
      {hits !== null && hits > 0 && chart.current !== null && (
        <span class="stepper">
          <IconButton
            icon="left"
            label="Previous match"
            hint="Shift+Enter"
            onClick={() => {
              go(-1);
            }}
          />
          <IconButton
            icon="right"
            label="Next match"
            hint="Enter"
            onClick={() => {
              go(1);
            }}
          />
        </span>
      )}
    </>
  );
}
