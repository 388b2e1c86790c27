import { computed, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { exactBytes, exactNs, formatBytes, formatNs, formatShape, plural } from '../../format';
import { LayoutCache, type LayoutWorker } from '../../graph/layout_cache';
import { HEAT_NAMES, type GraphOptions } from '../../graph/graph_options';
import { countsOf, laidOut, layoutGraphOf, type Scene } from '../../graph/scene';
import type { Resource } from '../../state/resource';
import { usePart } from '../../ui/hooks';
import { ZoomButtons } from '../../ui/ZoomButtons';
import type { SessionProps } from '../panel';
import { GraphChart, type GraphTip } from './graph_chart';
import type { GraphValues } from './graph_values';
import { GraphLegend } from './GraphLegend';
import { setGraph } from './set_graph';
import { listenToGraph } from './graph_input';
import { AccessibleNodeList } from './AccessibleNodeList';

const layouts = new LayoutCache(
  (): LayoutWorker =>
    new Worker(new URL('../../workers/layout.worker.ts', import.meta.url), { type: 'module' }),
);

interface Props extends SessionProps {
  readonly scene: Scene;
  readonly chart: { current: GraphChart | null };
  readonly options: GraphOptions;
  readonly values: Resource<GraphValues>;
}

export function GraphCanvas(props: Props) {
  const { store, session, panel, scene, chart, options, values } = props;
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const tip = useRef(signal<GraphTip | null>(null)).current;
  const announcement = useRef(signal('')).current;
  const untouched = usePart(() => store.navigation.view.value.windows[panel] === undefined);

  useEffect(() => {
    if (!host.current || !canvas.current) return;
    const parts = {
      store,
      session,
      panel,
      host: host.current,
      canvas: canvas.current,
      tip,
      announcement,
      values: computed(() => values.state.value.value?.byOp ?? NO_VALUES),
    };
    const made = new GraphChart(parts);
    chart.current = made;
    const stopListening = listenToGraph(canvas.current, made);
    const unregister = store.shell.registerViewport(panel, made);
    return () => {
      chart.current = null;
      unregister();
      stopListening();
      made.destroy();
    };
  }, [store, session]);

  useEffect(
    () =>
      layouts.request(layoutGraphOf(scene), (layout) => {
        chart.current?.show(laidOut(scene, layout));
      }),
    [scene],
  );

  const { layer, nodes, edges } = scene.graph;
  return (
    <>
      <div class="graph" ref={host}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="graph"
          aria-label={`${layer < 0 ? 'Model' : `Layer ${layer}`}: ${plural(nodes.length, 'node')}, ${plural(edges.length, 'edge')}. Arrow keys follow the edges, Enter selects${layer < 0 ? ', O opens a box' : ''}. A list of the nodes follows.`}
        />
        <p class="visually-hidden" role="status">
          {announcement.value}
        </p>
        <AccessibleNodeList store={store} session={session} scene={scene} />
        <ZoomButtons
          viewport={() => chart.current}
          whole={false}
          reset={{
            run: () => chart.current?.reset(),
            disabled: untouched,
          }}
        />
        <Tip tip={tip} />
      </div>
      <GraphLegend
        store={store}
        counts={countsOf(scene)}
        hidden={options.hide}
        heat={options.heat === 'none' ? null : HEAT_NAMES[options.heat]}
        toggle={(category) => {
          const hide = options.hide.includes(category)
            ? options.hide.filter((one) => one !== category)
            : [...options.hide, category];
          setGraph(store, panel, { ...options, hide });
        }}
      />
    </>
  );
}

const NO_VALUES: ReadonlyMap<number, number> = new Map();

const WIDTH = 292; // as in panels.css
const HEIGHT = 170;

function Tip({ tip }: { tip: { readonly value: GraphTip | null } }) {
  const shown = tip.value;
  if (!shown) return null;
  const { item, ns, x, y, width, height } = shown;
  const { node } = item;
  const left = x + 14 + WIDTH > width ? Math.max(0, x - WIDTH - 12) : x + 14;
  const top = Math.max(0, Math.min(y + 14, height - HEIGHT));
  const what = node.role === '' ? node.component : `${node.component}, ${node.role}`;
  return (
    <div class="tip" style={{ transform: `translate(${left}px, ${top}px)` }}>
      <div class="tip-head">
        <b class="mono">{node.name}</b>
        <span>{node.op ?? node.kind}</span>
      </div>
      <dl>
        {node.label !== '' && <Line name="meaning" value={node.label} />}
        <Line name="shape" value={`${node.type} ${formatShape(node.shape)}`} />
        <Line name="size" value={`${formatBytes(node.size)} (${exactBytes(node.size)})`} />
        <Line
          name="layer"
          value={node.layer === null ? 'none (embedding or output)' : String(node.layer)}
        />
        <Line name="component" value={what} />
        <Line name="category" value={node.category.replaceAll('_', ' ')} />
        {ns > 0 && <Line name="time" value={`${formatNs(ns)} (${exactNs(ns)})`} />}
      </dl>
    </div>
  );
}

function Line({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
