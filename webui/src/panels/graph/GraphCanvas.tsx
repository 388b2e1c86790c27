import { computed, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { formatBytes, formatCount, formatNs, plural } from '../../format';
import { LayoutCache } from '../../graph/layout_cache';
import { HEAT_NAMES, type GraphOptions } from '../../graph/graph_options';
import { countsOf, laidOut, layoutGraphOf, valuesOf, type Scene } from '../../graph/scene';
import type { Resource } from '../../state/resource';
import { usePart, useResource } from '../../ui/hooks';
import { startLayoutWorker } from '../../workers/start_layout_worker';
import { ZoomButtons } from '../../ui/ZoomButtons';
import type { SessionProps } from '../panel';
import { GraphChart } from './graph_chart';
import type { GraphValues } from './graph_values';
import { GraphLegend, type GraphHeat } from './GraphLegend';
import { setGraph } from './set_graph';
import { listenToGraph } from './graph_input';
import { AccessibleNodeList } from './AccessibleNodeList';

const layouts = new LayoutCache(startLayoutWorker);

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
  const over = useRef<HTMLCanvasElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const announcement = useRef(signal('')).current;
  const untouched = usePart(() => store.navigation.view.value.windows[panel] === undefined);

  useEffect(() => {
    if (!host.current || !canvas.current || !over.current || !tip.current) return;
    const parts = {
      store,
      session,
      panel,
      host: host.current,
      canvas: canvas.current,
      over: over.current,
      tip: tip.current,
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

  const byOp = useResource(values).value?.byOp;
  const { layer, nodes, edges } = scene.graph;
  return (
    <>
      <div class="graph" ref={host}>
        <canvas
          ref={canvas}
          class="graph-base"
          tabIndex={0}
          role="application"
          aria-roledescription="graph"
          aria-label={`${layer < 0 ? 'Model' : `Layer ${layer}`}: ${plural(nodes.length, 'node')}, ${plural(edges.length, 'edge')}. Arrow keys follow the edges, Enter selects${layer < 0 ? ', O opens a box' : ''}. A list of the nodes follows.`}
        />
        <canvas ref={over} class="graph-hover" aria-hidden="true" />
        <p class="visually-hidden" role="status">
          {announcement.value}
        </p>
        <AccessibleNodeList store={store} session={session} scene={scene} />
        <div ref={tip} class="tip" hidden />
      </div>
      <GraphLegend
        store={store}
        counts={countsOf(scene)}
        hidden={options.hide}
        heat={options.heat !== 'none' && byOp ? heatOf(options.heat, scene, byOp) : null}
        toggle={(category) => {
          const hide = options.hide.includes(category)
            ? options.hide.filter((one) => one !== category)
            : [...options.hide, category];
          setGraph(store, panel, { ...options, hide });
        }}
      >
        <ZoomButtons
          viewport={() => chart.current}
          whole={false}
          reset={{
            run: () => chart.current?.reset(),
            disabled: untouched,
          }}
        />
      </GraphLegend>
    </>
  );
}

const NO_VALUES: ReadonlyMap<number, number> = new Map();

const TEXT_OF = { time: formatNs, bytes: formatBytes, faults: formatCount } as const;

// The ends of the scale of the shown nodes, as they are coloured.
function heatOf(
  heat: keyof typeof TEXT_OF,
  scene: Scene,
  byOp: ReadonlyMap<number, number>,
): GraphHeat {
  const used = valuesOf(scene, byOp).filter((value) => value > 0);
  const [least, most] = [Math.min(...used), Math.max(...used)];
  const text = TEXT_OF[heat];
  return { name: HEAT_NAMES[heat], ends: used.length === 0 ? null : [text(least), text(most)] };
}
