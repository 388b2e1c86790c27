// What was recorded of the open session, how its times came about, and what was
// lost on the way. Nothing that is missing is silent.
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, formatCount, plural } from '../format';
import { sentence } from '../net/api';
import type { Store } from '../state/store';
import type { TraceData } from '../state/trace_data';

export function StatusLine({ store }: { store: Store }) {
  const health = useMemo(() => store.select((state) => state.health), [store]).value;
  const fault = useMemo(() => store.select((state) => state.fault), [store]).value;
  return (
    <footer class="status">
      <SessionStatus store={store} />
      {fault !== null && <span class="warn">{fault}</span>}
      <span class="status-end">{health ? `tensor-trace ${health.version}` : 'no server'}</span>
    </footer>
  );
}

function SessionStatus({ store }: { store: Store }) {
  const open = useMemo(() => store.select((state) => state.open), [store]).value;
  const version = open?.version ?? 0;
  const counts = useMemo(() => countSteps(store.data), [store, version]);
  if (!open) return <span>no session</span>;
  const info = open.info.is === 'ready' ? open.info.value : null;
  if (open.info.is === 'failed') return <span class="warn">{sentence(open.info.error)}</span>;
  const losses = Object.entries(info?.losses ?? {}).filter(
    ([, n]) => typeof n === 'number' && n > 0,
  );
  return (
    <>
      <span>session {open.id}</span>
      <span>
        {plural(counts.steps, 'step')}, {plural(store.data.tokens.length, 'token')}
      </span>
      {counts.accesses > 0 && <span>{plural(counts.accesses, 'access', 'accesses')}</span>}
      <Timings counts={counts} />
      {info && (
        <span title={exactBytes(info.file_bytes)}>{formatBytes(info.file_bytes)} on disk</span>
      )}
      {info && info.level !== '' && <span>trace {info.level}</span>}
      <span class={open.lostFrames > 0 ? 'warn' : 'dim'}>
        {formatCount(open.lostFrames)} live frames dropped
      </span>
      <span class={losses.length + counts.dropped > 0 ? 'warn' : 'dim'}>
        {counts.dropped > 0
          ? `${plural(counts.dropped, 'step')} without times`
          : losses.length > 0
            ? losses.map(([what, n]) => `${what} lost: ${String(n)}`).join(', ')
            : 'nothing lost'}
      </span>
    </>
  );
}

interface Counts {
  readonly steps: number;
  readonly accesses: number;
  readonly dropped: number;
  readonly timing: Readonly<Record<string, number>>;
}

function countSteps(data: TraceData): Counts {
  const timing: Record<string, number> = {};
  let steps = 0;
  let accesses = 0;
  let dropped = 0;
  for (const step of data.steps) {
    if (!step) continue;
    steps += 1;
    accesses += step.accesses;
    if (step.dropped) dropped += 1;
    timing[step.timing] = (timing[step.timing] ?? 0) + 1;
  }
  return { steps, accesses, dropped, timing };
}

const TIMING_HINT =
  'fast: times taken at full speed, counts verified. learned: the first step of a graph, timed while it was verified. exact: timed op by op.';

function Timings({ counts }: { counts: Counts }) {
  const known = ['fast', 'learned', 'exact'].filter((name) => (counts.timing[name] ?? 0) > 0);
  if (known.length === 0) return null;
  return (
    <span class="timings" title={TIMING_HINT}>
      {known.map((name) => (
        <span key={name}>
          <i class={`timing timing-${name}`} aria-hidden="true" />
          {formatCount(counts.timing[name] ?? 0)} {name}
        </span>
      ))}
    </span>
  );
}
