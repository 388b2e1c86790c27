// The memory budget of the current model: what the server decided, a slider with the predicted
// speed of every budget, where the weights are now, and speed and disk reads while it runs.
import { useComputed } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, formatNs, formatSpeed, plural } from '../../format';
import type { Memory, MemoryOptions, MemoryPlan } from '../../net/types';
import { MemoryBudget } from '../../state/memory_budget';
import { graphOf } from '../../state/per_session';
import type { OpenSession } from '../../state/open_session';
import type { SpeedHistory } from '../../state/speed_history';
import type { Store } from '../../state/store';
import { modelMemory, type ModelMemory } from '../../strip/bands';
import { Check } from '../../ui/Check';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, Failed, Loading } from '../../ui/States';
import { isModelOf } from '../map/residency';
import type { PanelProps } from '../panel';
import {
  beginnings,
  gainsByPlan,
  isInForce,
  lineOf,
  logarithmic,
  mapColumns,
  polyline,
  predictionFor,
  runningTime,
  type CurvePoint,
  type RunningTime,
} from './curve';
import { ExpertTable } from './ExpertTable';
import { RunComparison } from './RunComparison';
import { enoughOf, enoughText, LEAST_BUDGET, weightsText } from './sizes';

const CHART = { width: 600, height: 110 };
const MAP_COLUMNS = 120;
const MIB = 1 << 20;

export function BudgetPanel({ store }: PanelProps) {
  const loaded = useComputed(() => {
    const model = store.models.current.value;
    return model?.state === 'loaded' ? model.id : null;
  }).value;
  if (loaded === null) {
    return (
      <Empty>
        The memory budget belongs to a loaded model. Choose a model at the top, and send a prompt.
      </Empty>
    );
  }
  return <OfModel key={loaded} store={store} model={loaded} />;
}

function OfModel({ store, model }: { store: Store; model: string }) {
  const budget = useMemo(() => store.memoryBudget(model), [store, model]);
  useEffect(() => budget.use(), [budget]);
  const state = budget.state.value;
  const error = budget.error.value;
  const current = store.models.current.value;
  if (!state)
    return error ? <Failed what="The budget cannot be read." error={error} /> : <Loading />;
  return (
    <div class="budget">
      <Decision state={state} />
      <Choice store={store} budget={budget} state={state} />
      <WeightMap plan={budget.plan.value} />
      <ExpertTable state={state} />
      <History budget={budget} />
      {current && <RunComparison store={store} model={current} />}
    </div>
  );
}

const PHASES: Readonly<Record<Memory['phase'], string>> = {
  off: 'No plan',
  learning: 'Learning',
  fits: 'Fits',
  active: 'Active',
  unavailable: 'Not possible',
};

// The budget has no effect.
const isImpossible = ({ phase, budget }: Memory): boolean =>
  phase === 'unavailable' && budget !== 'off';

function Decision({ state }: { state: Memory }) {
  const limit = state.limit_bytes > 0 && (
    <>
      {' '}
      Memory limit: {formatBytes(state.limit_bytes)} ({state.limit_source}),{' '}
      {formatBytes(state.limit_used_bytes)} used.
    </>
  );
  return (
    <p class="budget-decision" role="status">
      <b data-phase={state.phase}>{PHASES[state.phase]}.</b>{' '}
      {state.phase === 'active' && 'Planned: '}
      {state.message !== ''
        ? state.message
        : 'The kernel alone decides which weights stay in memory. If the model is larger than memory, set a budget.'}
      {isImpossible(state) && ' Remove the budget, or choose a larger one.'}
      {limit}
    </p>
  );
}

interface SliderProps {
  readonly budget: MemoryBudget;
  readonly state: Memory;
}

// The memory of the model is known from the graph of a session of it.
function Choice({ store, budget, state }: SliderProps & { store: Store }) {
  const session = store.open.value;
  const info = session?.info.value;
  const model = store.models.current.value;
  const isOfModel = info?.is === 'ready' && model !== null && isModelOf(info.value, model);
  return session && isOfModel ? (
    <OfSession key={session.id} budget={budget} state={state} session={session} />
  ) : (
    <Slider budget={budget} state={state} memory={null} sampleNs={0} />
  );
}

function OfSession({ session, ...props }: SliderProps & { session: OpenSession }) {
  const graph = useResource(graphOf(session)).value;
  const isPlanned = props.state.budget !== 'off';
  const info = session.info.value;
  const memory = useMemo(() => {
    if (!graph) return null;
    const memory = modelMemory(graph.tensors, info.is === 'ready' ? info.value.facts : {});
    // With a budget the model is loaded without repacking, other than in an older session of it.
    return isPlanned ? { ...memory, file: memory.file + memory.repacked, repacked: 0 } : memory;
  }, [graph, isPlanned, info]);
  const sampleNs = usePart(() => {
    void session.feed.version.value;
    const { tokens, sampleNs: sum } = session.data.stepTotals.generated;
    return tokens > 0 ? Math.round(sum / tokens) : 0;
  });
  return <Slider {...props} memory={memory} sampleNs={sampleNs} />;
}

// `sampleNs`: per token of the open session; 0: not known.
function Slider(props: SliderProps & { memory: ModelMemory | null; sampleNs: number }) {
  const { budget, state, memory, sampleNs } = props;
  const plan = budget.plan.value;
  const total = plan?.tensors.reduce((sum, { size_bytes }) => sum + size_bytes, 0) ?? 0;
  const now = typeof state.budget === 'number' ? state.budget : state.plan.budget_bytes;
  const bytes = Math.min(total, budget.chosen.value ?? (now > 0 ? now : total));
  const curve = plan?.curve ?? [];
  const at = predictionFor(curve, bytes, state);
  const least = Math.min(total, LEAST_BUDGET);
  const isTooSmall = total > 0 && total <= LEAST_BUDGET;
  const fits = at !== null && at.plain_bytes_per_token < 1;
  const isRepacked = memory !== null && memory.repacked > 0 && state.budget === 'off';
  const enough = enoughText(memory, enoughOf(curve));
  const change = (options: MemoryOptions): void => {
    void budget.change(options);
  };
  return (
    <section class="budget-choice" aria-label="Budget">
      {enough !== '' && <p class="budget-enough">{enough}</p>}
      {isRepacked && (
        <p class="dim">
          {formatBytes(memory.repacked)} of the weights are repacked copies, which must stay in
          memory. A budget loads the model again without them; the figures below are predictions for
          that, from the speed with them.
        </p>
      )}
      {isTooSmall ? (
        <p>
          The model is too small for a budget: the least budget is {formatBytes(LEAST_BUDGET)}, and
          its weights are {formatBytes(total)}.
        </p>
      ) : curve.length > 0 ? (
        <Curve
          curve={curve}
          from={least}
          to={total}
          at={bytes}
          measured={state.tokens_per_second}
          sampleNs={sampleNs}
        />
      ) : (
        <p class="dim">Send a prompt: then the speed of every budget can be predicted.</p>
      )}
      {!isTooSmall && (
        <label class="budget-slider">
          <input
            type="range"
            min={least}
            max={total}
            step="any" // a step of 1 MiB would end before the maximum
            value={bytes}
            disabled={total === 0}
            onInput={(event) => {
              const typed = Number(event.currentTarget.value);
              budget.choose(typed >= total ? total : Math.round(typed / MIB) * MIB);
            }}
          />
          <span>
            Memory for weights: <output title={exactBytes(bytes)}>{formatBytes(bytes)}</output> of{' '}
            {weightsText(total, memory)}
          </span>
        </label>
      )}
      {!isTooSmall && total > 0 && (
        <p class="dim">
          At least {formatBytes(LEAST_BUDGET)}: reading ahead needs room for the weights of two ops.
        </p>
      )}
      {at && !isTooSmall && (
        <p class="budget-prediction">
          {fits ? (
            <b>
              With {formatBytes(bytes)} for the weights, all of them stay in memory: nothing to
              plan.
            </b>
          ) : (
            <>
              Predicted{plan?.disk_measured === false && ' for a disk of 1 GB/s'}:{' '}
              <b>{speedText(at.tokens_per_second)}</b>,{' '}
              {formatBytes(Math.round(at.bytes_per_token))} read from the disk per token. Without a
              plan: {speedText(at.plain_tokens_per_second)},{' '}
              {formatBytes(Math.round(at.plain_bytes_per_token))}.
            </>
          )}
        </p>
      )}
      {isInForce(state, bytes) && budget.isMeasured(state) && <Measured state={state} />}
      <div class="budget-buttons">
        <button
          type="button"
          class={isImpossible(state) ? undefined : 'primary'}
          disabled={total === 0 || isTooSmall || fits}
          onClick={() => {
            change({ budget: bytes });
          }}
        >
          Use {formatBytes(bytes)}
        </button>
        <button
          type="button"
          title="As much as the memory limit leaves"
          aria-pressed={state.budget === 'auto'}
          onClick={() => {
            change({ budget: 'auto' });
          }}
        >
          Automatic
        </button>
        <button
          type="button"
          class={isImpossible(state) ? 'primary' : undefined}
          aria-pressed={state.budget === 'off'}
          onClick={() => {
            change({ budget: 'off' });
          }}
        >
          {state.budget === 'off' ? 'Off' : 'Remove budget'}
        </button>
        <Check
          text="Keep a part in memory (pin)"
          on={state.pin}
          set={(pin) => {
            change({ pin });
          }}
        />
        <Check
          text="Read the rest ahead (prefetch)"
          on={state.prefetch}
          set={(prefetch) => {
            change({ prefetch });
          }}
        />
      </div>
    </section>
  );
}

// Beside the prediction of the plan in force.
function Measured({ state }: { state: Memory }) {
  const { tokens_per_second: speed, bytes_per_token: bytes, late_ranges: late } = state;
  return (
    <p class="budget-measured-now">
      Measured, last 16 tokens: <b>{speedText(speed)}</b>, {formatBytes(Math.round(bytes))} read
      from the disk per token.
      {late > 0 &&
        ` Since the budget was set, ${plural(late, 'planned range')} came too late: their ops waited for the disk.`}
    </p>
  );
}

// The speed of every budget, drawn above the slider: the marker is above the slider's thumb.
function Curve(props: {
  curve: readonly CurvePoint[];
  from: number; // bytes at the left
  to: number; // bytes at the right
  at: number;
  measured: number | null; // tokens per second
  sampleNs: number;
}) {
  const { curve, from, to, measured, sampleNs } = props;
  const gains = gainsByPlan(curve);
  const planned = curve.map((point) => point.tokens_per_second);
  const speeds = [...planned, ...curve.map((point) => point.plain_tokens_per_second)];
  const heights = logarithmic([...speeds, measured]);
  const measuredY = CHART.height * (1 - (heights.at(-1) ?? 0) / (Math.max(...heights, 0) * 1.1));
  const max = { x: to - from, y: Math.max(...heights, 0) * 1.1 };
  const line = (first: number): string =>
    polyline(
      curve.map((point, i) => ({ x: point.budget_bytes - from, y: heights[first + i] ?? 0 })),
      max,
      CHART.width,
      CHART.height,
    );
  const x = max.x > 0 ? ((props.at - from) / max.x) * CHART.width : 0;
  const known = speeds.filter((speed) => speed !== null && speed > 0) as number[];
  const ends = [...new Set([Math.max(...known), Math.min(...known)])];
  return (
    <div class="budget-chart">
      <p class="dim">
        Predicted speed (logarithmic): <i class="budget-line" />{' '}
        {gains ? (
          <>
            with a plan, <i class="budget-line plain" /> without
          </>
        ) : (
          'with and without a plan: a plan gains nothing here'
        )}
        {measured !== null && (
          <>
            , <i class="budget-line measured" /> measured, last 16 tokens: {formatSpeed(measured)}
          </>
        )}
      </p>
      <div class="budget-plot">
        <svg
          class="budget-curve"
          viewBox={`0 0 ${CHART.width} ${CHART.height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Predicted tokens per second for every budget, with and without a plan, on a logarithmic scale: from ${ends.map(formatSpeed).toReversed().join(' to ')}`}
        >
          {gains && <polyline class="budget-plain" points={line(curve.length)} />}
          <polyline class="budget-planned" points={line(0)} />
          {measured !== null && (
            <line class="budget-measured" x1="0" x2={CHART.width} y1={measuredY} y2={measuredY} />
          )}
          <line class="budget-at" x1={x} x2={x} y1="0" y2={CHART.height} />
        </svg>
        {ends.map((speed) => (
          <Tick
            key={speed}
            at={(heights[speeds.indexOf(speed)] ?? 0) / max.y}
            text={formatSpeed(speed)}
          />
        ))}
      </div>
      <p class="budget-ends dim">
        <span>{formatBytes(from)}</span>
        <span>memory for weights</span>
        <span>{formatBytes(to)}</span>
      </p>
      <p class="dim">
        Predicted: time of the ops and the disk. The measured speed also has sampling
        {sampleNs > 0 && ` (${formatNs(sampleNs)} per token)`} and other programs.
      </p>
    </div>
  );
}

// Two tracks over the bytes of the model files: the plan, and what is in memory now.
function WeightMap({ plan }: { plan: MemoryPlan | null }) {
  if (!plan || plan.tensors.length === 0) return null;
  const columns = mapColumns(plan.tensors, MAP_COLUMNS);
  const sum = (of: 'pinned_bytes' | 'streamed_bytes' | 'resident_bytes' | 'size_bytes'): number =>
    plan.tensors.reduce((all, tensor) => all + (tensor[of] ?? 0), 0);
  const total = sum('size_bytes');
  const resident = plan.residency_known ? sum('resident_bytes') : null;
  return (
    <section class="budget-map" aria-label="Weights">
      <h2>The model file, from its first to its last tensor</h2>
      <svg
        viewBox={`0 0 ${MAP_COLUMNS} 40`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Pinned ${formatBytes(sum('pinned_bytes'))}, read for every token ${formatBytes(sum('streamed_bytes'))}, in memory ${resident === null ? 'not known' : formatBytes(resident)} of ${formatBytes(total)}`}
      >
        {columns.map((column, i) => (
          <g key={i}>
            <title>{columnText(column)}</title>
            <rect class="budget-rest" x={i} y="0" width="1.05" height="18" />
            <Part class="budget-streamed" x={i} y={0} share={column.streamed} />
            <Part class="budget-pinned" x={i} y={18 * column.streamed} share={column.pinned} />
            <rect class="budget-rest" x={i} y="22" width="1.05" height="18" />
            <Part
              class="budget-resident"
              x={i}
              y={22 + 18 * (1 - (column.resident ?? 0))}
              share={column.resident ?? 0}
            />
          </g>
        ))}
      </svg>
      <ul class="budget-legend">
        <li class="budget-pinned">pinned {formatBytes(sum('pinned_bytes'))}</li>
        <li class="budget-streamed">read for every token {formatBytes(sum('streamed_bytes'))}</li>
        <li class="budget-resident">
          {resident === null
            ? 'in memory: not known, because the kernel reports it only to users who may write the file'
            : `in memory ${formatBytes(resident)} of ${formatBytes(total)}`}
        </li>
      </ul>
    </section>
  );
}

function Part(props: { class: string; x: number; y: number; share: number }) {
  if (props.share <= 0) return null;
  return (
    <rect class={props.class} x={props.x} y={props.y} width="1.05" height={18 * props.share} />
  );
}

function columnText(column: ReturnType<typeof mapColumns>[number]): string {
  const percent = (share: number): string => `${Math.round(100 * share)} %`;
  const resident = column.resident === null ? '' : `, ${percent(column.resident)} in memory`;
  return `${column.name}: ${percent(column.pinned)} pinned, ${percent(column.streamed)} read for every token${resident}`;
}

function History({ budget }: { budget: MemoryBudget }) {
  void budget.version.value;
  const { history } = budget;
  const settings = budget.settings.value;
  const time = runningTime(history.atMs, history.runs);
  if (history.length === 0) {
    return (
      <p class="dim">
        Speed and disk reads are measured while this page is open and the model generates; a
        recorded session has none.
      </p>
    );
  }
  return (
    <section class="budget-history" aria-label="Speed and disk reads">
      {history.length > 1 && (
        <>
          <RunningChart
            history={history}
            time={time}
            label="Speed of the last 16 tokens"
            values={history.tokensPerSecond}
            text={formatSpeed}
          />
          <RunningChart
            history={history}
            time={time}
            label="Read from the disk per token"
            values={history.bytesPerToken}
            text={(value) => formatBytes(Math.round(value))}
          />
        </>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">Mean speed since this page was opened</th>
            <th scope="col">Mean read per token</th>
          </tr>
        </thead>
        <tbody>
          {settings.map((setting) => (
            <tr key={setting.text}>
              <th scope="row">{setting.text}</th>
              <td>{speedText(setting.tokensPerSecond)}</td>
              <td>{formatBytes(Math.round(setting.bytesPerToken))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function RunningChart(props: {
  history: SpeedHistory;
  time: RunningTime;
  label: string;
  values: Float64Array;
  text: (value: number) => string;
}) {
  const { history, values, time } = props;
  const most = Math.max(...values, 0);
  const max = { x: Math.max(1, time.x.at(-1) ?? 0), y: most * 1.1 };
  const height = 60;
  const starts = beginnings(history.runs);
  const changes = beginnings(history.setting).slice(1);
  const gaps = starts.slice(1).filter((i) => !changes.includes(i));
  const mark = (i: number, name: string) => {
    const at = (time.x[i] ?? 0) - (starts.includes(i) ? time.gap / 2 : 0);
    const x = (at / max.x) * CHART.width;
    return <line key={`${name} ${i}`} class={name} x1={x} x2={x} y1="0" y2={height} />;
  };
  return (
    <figure>
      <figcaption>
        {props.label}: <b>{props.text(values.at(-1) ?? 0)}</b>
      </figcaption>
      <div class="budget-plot">
        <svg
          viewBox={`0 0 ${CHART.width} ${height}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${props.label} over the time of generating, at most ${props.text(most)}`}
        >
          {gaps.map((i) => mark(i, 'budget-gap'))}
          {changes.map((i) => mark(i, 'budget-at'))}
          {starts.map((from, i) => (
            <polyline
              key={from}
              class="budget-planned"
              points={polyline(
                lineOf(time.x, values, from, starts[i + 1]),
                max,
                CHART.width,
                height,
              )}
            />
          ))}
        </svg>
        <Tick at={1 / 1.1} text={props.text(most)} />
        <Tick at={0} text={props.text(0)} />
      </div>
      <p class="budget-ends dim">
        <span>{time.ms > 0 ? `${formatNs(time.ms * 1e6)} of generating` : 'first token'}</span>
        {starts.length > 1 && <span>lines between runs</span>}
        <span>last token</span>
      </p>
    </figure>
  );
}

// A figure at a height of a chart, 0 at its bottom and 1 at its top; it stays inside the chart.
function Tick({ at, text }: { at: number; text: string }) {
  const bottom = `clamp(1px, calc(${(100 * at).toFixed(1)}% - 7px), calc(100% - 14px))`;
  return (
    <span class="budget-tick" style={{ bottom }}>
      {text}
    </span>
  );
}

const speedText = (tokensPerSecond: number | null): string =>
  tokensPerSecond === null ? 'not known' : formatSpeed(tokensPerSecond);
