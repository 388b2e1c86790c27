// What was recorded of the open session, how its times came about, and what was
// lost on the way. Nothing that is missing is silent.
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, formatCount, plural } from '../format';
import { sentence } from '../net/api';
import type { Session } from '../net/types';
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
      {info?.level !== undefined && <span>trace {info.level}</span>}
      <span class={open.lostFrames > 0 ? 'warn' : 'dim'}>
        {formatCount(open.lostFrames)} live frames dropped
      </span>
      <Losses info={info} dropped={counts.dropped} />
    </>
  );
}

// What the recording lost: as the file says once it does, before that as the
// steps themselves say.
function Losses({ info, dropped }: { info: Session | null; dropped: number }) {
  const counted = Object.entries(info?.losses ?? {}).filter(([, n]) => n > 0);
  const texts = counted.map(([what, n]) => `${formatCount(n)} ${what.replaceAll('_', ' ')}`);
  if (texts.length === 0 && dropped > 0) texts.push(`${plural(dropped, 'step')} without times`);
  return texts.length === 0 ? (
    <span class="dim">nothing lost</span>
  ) : (
    <span class="warn">{texts.join(', ')}</span>
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
