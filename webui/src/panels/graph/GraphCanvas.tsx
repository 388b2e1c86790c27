import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { exactBytes, exactNs, formatBytes, formatNs, formatShape, plural } from '../../format';
import { LayoutCache, type LayoutWorker } from '../../graph/layout_cache';
import { countsOf, layoutGraphOf, type Scene } from '../../graph/scene';
import { usePart } from '../../ui/hooks';
import { ZoomButtons } from '../../ui/ZoomButtons';
import type { SessionProps } from '../panel';
import { GraphChart, type GraphTip } from './graph_chart';
import { GraphLegend } from './GraphLegend';
import { listenToGraph } from './graph_input';
import { AccessibleNodeList } from './AccessibleNodeList';

const layouts = new LayoutCache(
  (): LayoutWorker =>
    new Worker(new URL('../../workers/layout.worker.ts', import.meta.url), { type: 'module' }),
);

interface Props extends SessionProps {
  readonly scene: Scene;
  readonly chart: { current: GraphChart | null };
}

export function GraphCanvas({ store, session, panel, scene, chart }: Props) {
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
        chart.current?.show({ scene, layout });
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
          aria-label={`Layer ${layer}: ${plural(nodes.length, 'node')}, ${plural(edges.length, 'edge')}. Arrow keys follow the edges, Enter selects. A list of the nodes follows.`}
        />
        <p class="visually-hidden" role="status">
          {announcement.value}
        </p>
        <AccessibleNodeList store={store} scene={scene} />
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
      <GraphLegend store={store} counts={countsOf(scene)} />
    </>
  );
}

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
