// The memory budget of the current model: what the server decided, a slider with the predicted
// speed of every budget, where the weights are now, and speed and disk reads while it runs.
import { useComputed } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { exactBytes, fileName, formatBytes, formatNs, formatSpeed, plural } from '../../format';
import type { Memory, MemoryOptions } from '../../net/types';
import { findingsOf } from '../../state/session/findings';
import { MemoryBudget } from '../../state/request/memory_budget';
import { graphOf } from '../../state/session/per_session';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { bandsOf } from '../../strip/bands';
import { Check } from '../../ui/Check';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, Failed, Loading } from '../../ui/States';
import { isModelOf } from '../map/residency';
import type { PanelProps } from '../panel';
import { CHART_WIDTH, speedText, Tick } from './chart';
import {
  gainsByPlan,
  isInForce,
  logarithmic,
  polyline,
  predictionFor,
  type CurvePoint,
} from './curve';
import { ExpertTable } from './ExpertTable';
import { History } from './History';
import { RunComparison } from './RunComparison';
import { enoughOf, enoughText, LEAST_BUDGET, otherSettings, weightsText } from './sizes';
import { WeightMap } from './WeightMap';

const CHART_HEIGHT = 110;
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
    <div class="budget" tabIndex={0} role="region" aria-label="Budget and what it costs">
      <div class="budget-parts">
        <div class="budget-choices">
          <Which store={store} />
          <Decision state={state} />
          <Choice store={store} budget={budget} state={state} />
        </div>
        <WeightMap store={store} plan={budget.plan.value} />
        <div class="budget-measured-runs">
          <ExpertTable state={state} />
          <History budget={budget} />
          {current && <RunComparison store={store} model={current} />}
        </div>
      </div>
    </div>
  );
}

// The model that the panel is about: the next run's, which need not be that of the open session.
function Which({ store }: { store: Store }) {
  const model = store.models.current.value;
  const info = store.open.value?.info.value;
  const session = info?.is === 'ready' ? info.value : null;
  if (!model) return null;
  const isOther = session !== null && !isModelOf(session, model);
  return (
    <p class="budget-model" role="note">
      Memory of <b>{model.id}</b>, {formatBytes(model.size_bytes)}, the model of the next run.
      {isOther && (
        <span class="warn">
          {' '}
          The open session is of another model
          {session.model ? `, ${fileName(session.model.path)}` : ''}: its memory is in the inspector
          and in the map.
        </span>
      )}
    </p>
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
    <OfSession key={session.id} {...{ store, budget, state, session }} />
  ) : (
    <Slider {...{ budget, state }} repacked={0} enough={null} others={[]} sampleNs={0} />
  );
}

function OfSession({
  store,
  session,
  ...props
}: SliderProps & { store: Store; session: OpenSession }) {
  const graph = useResource(graphOf(session)).value;
  const isPlanned = props.state.budget !== 'off';
  const found = useResource(findingsOf(session)).value;
  const repacked = useMemo(
    () =>
      // With a budget the model is loaded without repacking, other than in an older session of it.
      !graph || isPlanned
        ? 0
        : (bandsOf(graph.tensors).groups.find(({ memory }) => memory === 'repacked')?.bytes ?? 0),
    [graph, isPlanned],
  );
  const enough = isPlanned
    ? null
    : (found?.findings.find(({ kind }) => kind === 'enough_memory')?.text ?? null);
  const info = session.info.value;
  const model = store.models.current.value;
  const others = info.is === 'ready' && model ? otherSettings(info.value, model) : [];
  const sampleNs = usePart(() => {
    void session.feed.version.value;
    const { tokens, sampleNs: sum } = session.data.stepTotals.generated;
    return tokens > 0 ? Math.round(sum / tokens) : 0;
  });
  return <Slider {...props} {...{ repacked, enough, others, sampleNs }} />;
}

// `text`: how much memory is enough for the open session. `others`: the settings of the next run that
// differ from its own.
function Enough({ text, others }: { text: string; others: readonly string[] }) {
  return (
    <>
      <p class="budget-enough">
        <b>
          The open session
          {others.length === 0 && ', and the next run, whose memory has the same settings'}:
        </b>{' '}
        {text}
      </p>
      {others.length > 0 && (
        <p class="budget-enough warn" role="note">
          <b>The next run</b> has other settings: {others.join(', ')}. It needs another amount of
          memory, which its summary says when it has ended.
        </p>
      )}
    </>
  );
}

// `repacked`: bytes, now. `enough`: how much memory is, from the open session; null: predicted. `others`:
// as of Enough. `sampleNs`: per token of the open session; 0: not known.
function Slider(
  props: SliderProps & {
    repacked: number;
    enough: string | null;
    others: readonly string[];
    sampleNs: number;
  },
) {
  const { budget, state, repacked, sampleNs } = props;
  const plan = budget.plan.value;
  if (!plan) {
    return (
      <section class="budget-choice" aria-label="Budget">
        {props.enough !== null && <Enough text={props.enough} others={props.others} />}
        <Loading>The speed of each budget is being predicted…</Loading>
      </section>
    );
  }
  const total = plan.tensors.reduce((sum, { file_bytes }) => sum + file_bytes, 0);
  const now = typeof state.budget === 'number' ? state.budget : state.plan.budget_bytes;
  const bytes = Math.min(total, budget.chosen.value ?? (now > 0 ? now : total));
  const { curve } = plan;
  const at = predictionFor(curve, bytes, state);
  const least = Math.min(total, LEAST_BUDGET);
  const isTooSmall = total > 0 && total <= LEAST_BUDGET;
  const fits = at !== null && at.plain_bytes_per_token < 1;
  const isRepacked = repacked > 0 && state.budget === 'off';
  const predicted = enoughText(enoughOf(curve));
  const change = (options: MemoryOptions): void => {
    void budget.change(options);
  };
  return (
    <section class="budget-choice" aria-label="Budget">
      {props.enough !== null ? (
        <Enough text={props.enough} others={props.others} />
      ) : (
        predicted !== '' && (
          <p class="budget-enough">
            <b>The next run:</b> {predicted}
          </p>
        )
      )}
      {isRepacked && (
        <p class="dim">
          {formatBytes(repacked)} of the weights are repacked copies, which must stay in memory. A
          budget loads the model again without them; the figures below are predictions for that,
          from the speed with them.
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
            {weightsText(total, repacked)}
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
              Predicted{!plan.disk_measured && ' for a disk of 1 GB/s'}:{' '}
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
      Measured in the newest run of this model, last 16 tokens: <b>{speedText(speed)}</b>,{' '}
      {formatBytes(Math.round(bytes))} read from the disk per token.
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
  const measuredY = CHART_HEIGHT * (1 - (heights.at(-1) ?? 0) / (Math.max(...heights, 0) * 1.1));
  const max = { x: to - from, y: Math.max(...heights, 0) * 1.1 };
  const line = (first: number): string =>
    polyline(
      curve.map((point, i) => ({ x: point.budget_bytes - from, y: heights[first + i] ?? 0 })),
      max,
      CHART_WIDTH,
      CHART_HEIGHT,
    );
  const x = max.x > 0 ? ((props.at - from) / max.x) * CHART_WIDTH : 0;
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
            , <i class="budget-line measured" /> measured in the newest run, last 16 tokens:{' '}
            {formatSpeed(measured)}
          </>
        )}
      </p>
      <div class="budget-plot">
        <svg
          class="budget-curve"
          viewBox={`0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Predicted tokens per second for every budget, with and without a plan, on a logarithmic scale: from ${ends.map(formatSpeed).toReversed().join(' to ')}`}
        >
          {gains && <polyline class="budget-plain" points={line(curve.length)} />}
          <polyline class="budget-planned" points={line(0)} />
          {measured !== null && (
            <line class="budget-measured" x1="0" x2={CHART_WIDTH} y1={measuredY} y2={measuredY} />
          )}
          <line class="budget-at" x1={x} x2={x} y1="0" y2={CHART_HEIGHT} />
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
