// Where the run is stopped, and how it goes on.
import { useEffect } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import { formatShape, tokenText } from '../format';
import type { DebugStop } from '../net/types';
import type { Until } from '../state/request/debug';
import type { OpenSession } from '../state/session/open_session';
import type { Store } from '../state/store';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly stop: DebugStop;
}

// `many`: what the button says and does if it goes on by several.
const STEPS: readonly { until: Until; text: string; many: string; key: string; hint: string }[] = [
  { until: 'op', text: 'Step op', many: 'ops', key: 'F10', hint: 'Go on to the next op' },
  { until: 'layer', text: 'Layer', many: 'layers', key: 'F9', hint: 'Go on to the first op of another layer' },
  { until: 'step', text: 'Token', many: 'tokens', key: 'Shift+F9', hint: 'Go on to the first op of the next step' },
]; // prettier-ignore
const MAX_STEPS = 1_000_000;

export function DebugControls({ store, session, stop }: Props) {
  const { debug } = store;
  const isRunning = debug.isRunning.value;
  const by = debug.stepsBy.value;
  return (
    <section class="debug-bar" aria-label="Debugger" data-running={isRunning}>
      <div class="debug-buttons">
        <button
          type="button"
          class="primary"
          title={
            isRunning ? 'Stop before the next op (F8)' : 'Go on to a breakpoint or the end (F8)'
          }
          onClick={() => {
            if (isRunning) void debug.pause();
            else debug.goOn('breakpoint');
          }}
        >
          {isRunning ? 'Pause' : 'Continue'}
        </button>
        {STEPS.map(({ until, text, many, key, hint }) => (
          <button
            key={until}
            type="button"
            class="small"
            disabled={isRunning}
            title={`${by === 1 ? hint : `Go on by ${by} ${many}`} (${key})`}
            onClick={() => {
              debug.goOn(until);
            }}
          >
            {by === 1 ? text : `${by} ${many}`}
          </button>
        ))}
        <label class="debug-steps">
          by
          <input
            type="number"
            aria-label="Ops, layers or tokens of a step"
            title="Number of ops, layers or tokens per step. Enter steps by this number of ops"
            min={1}
            max={MAX_STEPS}
            value={by}
            onInput={({ currentTarget: { valueAsNumber: wanted } }) => {
              if (Number.isInteger(wanted) && wanted >= 1 && wanted <= MAX_STEPS)
                debug.stepsBy.value = wanted;
            }}
            onBlur={(event) => {
              event.currentTarget.value = String(by); // not what cannot be used
            }}
            onKeyDown={(event) => {
              if (event.key === 'Enter') debug.goOn('op');
            }}
          />
        </label>
        <button
          type="button"
          class="small"
          disabled={session.stopping.value}
          title="End the run; the recorded part is kept"
          onClick={() => {
            void session.stop();
          }}
        >
          Cancel
        </button>
      </div>
      <p class="debug-place" role="status">
        {isRunning ? (
          <span class="dim">Running…</span>
        ) : (
          <Place store={store} session={session} stop={stop} />
        )}
      </p>
      {!isRunning && <TimeLeft store={store} />}
      <button
        type="button"
        class="link"
        onClick={() => {
          store.reveal('debug');
        }}
      >
        Values
      </button>
    </section>
  );
}

function Place({ store, session, stop }: Props) {
  const { place, before, breakpoints } = stop;
  void session.feed.version.value;
  const known = store.debug.state.value?.breakpoints ?? [];
  const why = breakpoints.flatMap(
    (number) => known.find((one) => one.number === number)?.text ?? [],
  );
  const token = tokenText(session.data.tokens[place.first_token]);
  const shape = stop.tensors[0]?.shape ?? [];
  return (
    <>
      <b>Stopped {before ? 'before' : 'after'}</b>{' '}
      <span>
        {place.operation_type} <b class="mono">{place.tensor_name}</b> {formatShape(shape)}
      </span>
      <span>
        {place.layer_id === null ? 'no layer' : `layer ${place.layer_id}`}, step {place.step}, op{' '}
        {place.op},{' '}
        {place.tokens === 1
          ? `token ${place.first_token}${token === '' ? '' : ` ${token}`}`
          : `tokens ${place.first_token} to ${place.first_token + place.tokens - 1}`}
      </span>
      {why.length > 0 && (
        <span class="dim">
          breakpoint <span class="mono">{why.join(', ')}</span>
        </span>
      )}
    </>
  );
}

// The time after which the run goes on by itself. Not announced: it changes every second.
function TimeLeft({ store }: { store: Store }) {
  const left = store.debug.state.value?.time_left_ms ?? null;
  const readAt = useSignal(Date.now());
  const now = useSignal(Date.now());
  useEffect(() => {
    readAt.value = now.value = Date.now();
    const timer = setInterval(() => {
      now.value = Date.now();
    }, 250);
    return () => {
      clearInterval(timer);
    };
  }, [left]);
  if (left === null) return null;
  const seconds = Math.max(0, Math.ceil((left - (now.value - readAt.value)) / 1000));
  const text = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  return (
    <span
      class={seconds < 20 ? 'warn' : 'dim'}
      title="Other requests wait for this run. It therefore goes on by itself, unless somebody reads or changes values."
    >
      goes on in {text}
    </span>
  );
}
