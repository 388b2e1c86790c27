// Changes what the op has computed. The run goes on with the changed output.
import { useSignal } from '@preact/signals';
import { plural } from '../../format';
import type { DebugStop } from '../../net/types';
import type { Store } from '../../state/store';
import { Check } from '../../ui/Check';

const VERBS = ['zero', 'scale', 'set'] as const;
type Verb = (typeof VERBS)[number];

const WHICH = [
  { value: 'all', text: 'everything', hint: '' },
  { value: 'head', text: 'head', hint: 'Number of the attention head' },
  { value: 'expert', text: 'expert', hint: 'Number of the expert' },
  { value: 'indices', text: 'elements', hint: '0, 64-127' },
] as const;
type Which = (typeof WHICH)[number]['value'];

// The change in the words of the server (docs/debug.md).
export function changeText(verb: Verb, which: Which, part: string, number: string): string {
  const what =
    which === 'all' ? '' : which === 'indices' ? ` [${part.trim()}]` : ` ${which} ${part.trim()}`;
  return `${verb}${what}${verb === 'zero' ? '' : ` ${number.trim()}`}`;
}

export function WhatIf({ store, stop }: { store: Store; stop: DebugStop }) {
  const { debug } = store;
  const verb = useSignal<Verb>('zero');
  const which = useSignal<Which>('all');
  const part = useSignal('0');
  const number = useSignal('0.5');
  const keep = useSignal(false);
  const problem = useSignal<{ readonly stop: number; readonly text: string } | null>(null);
  const parts = WHICH.filter(({ value }) => stop.changeable.includes(value));
  // Of another op.
  const chosen = parts.some(({ value }) => value === which.value) ? which.value : 'all';
  const isRunning = debug.isRunning.value;
  const changes = debug.state.value?.changes ?? [];
  const error = problem.value?.stop === stop.number ? problem.value.text : null;
  const change = async (): Promise<void> => {
    const text = changeText(verb.value, chosen, part.value, number.value);
    const failed = await debug.change(text, keep.value);
    problem.value = failed === null ? null : { stop: stop.number, text: failed };
  };
  return (
    <section aria-labelledby="debug-what-if" data-running={isRunning}>
      <h2 id="debug-what-if">What if</h2>
      {stop.before ? (
        <p class="dim">The op has not run: step to the next op, then its output can be changed.</p>
      ) : parts.length === 0 ? (
        <p class="dim">
          This output cannot be changed: only those that compute values of type f32 can be.
        </p>
      ) : (
        <form
          class="debug-change"
          aria-label="Change the output"
          onSubmit={(event) => {
            event.preventDefault();
            void change();
          }}
        >
          <select
            aria-label="Change"
            value={verb.value}
            onChange={(event) => {
              verb.value = event.currentTarget.value as Verb;
            }}
          >
            {VERBS.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
          <select
            aria-label="Part of the output"
            value={chosen}
            onChange={(event) => {
              which.value = event.currentTarget.value as Which;
            }}
          >
            {parts.map(({ value, text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
          {chosen !== 'all' && (
            <input
              type="text"
              class="mono"
              aria-label="Which"
              placeholder={WHICH.find(({ value }) => value === chosen)?.hint}
              maxLength={200}
              value={part.value}
              onInput={(event) => {
                part.value = event.currentTarget.value;
              }}
            />
          )}
          {verb.value !== 'zero' && (
            <label>
              <span>{verb.value === 'scale' ? 'by' : 'to'}</span>
              <input
                type="text"
                class="mono"
                inputMode="decimal"
                aria-label={verb.value === 'scale' ? 'Factor' : 'Value'}
                aria-invalid={error !== null}
                maxLength={40}
                value={number.value}
                onInput={(event) => {
                  number.value = event.currentTarget.value;
                }}
              />
            </label>
          )}
          <button type="submit" class="small" disabled={isRunning}>
            Change the output
          </button>
          <Check
            text="Keep for all tokens"
            hint="Make the change also in all later steps of this run, at the same op. The session records each"
            on={keep.value}
            set={(on) => {
              keep.value = on;
            }}
          />
        </form>
      )}
      <p class="problem" role="alert">
        {error}
      </p>
      <Kept store={store} />
      {changes.length > 0 && (
        <ol class="debug-changes" aria-label="Changes so far">
          {changes.map(({ place, text, elements, last_step: last }, i) => (
            <li key={i}>
              <b class="mono">{text}</b>{' '}
              <span class="dim">
                <span class="mono">{place.tensor_name}</span>,{' '}
                {last === place.step ? `step ${last}` : `steps ${place.step} to ${last}`}, op{' '}
                {place.op} ({plural(elements, 'element')}
                {last !== place.step && ' each'})
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

// The changes that are made again in each later step. They can be ended while the run goes on, too.
function Kept({ store }: { store: Store }) {
  const { debug } = store;
  const kept = debug.state.value?.kept ?? [];
  if (kept.length === 0) return null;
  return (
    <ul class="debug-kept" aria-label="Kept changes">
      {kept.map(({ number, place, text, steps, problem }) => (
        <li key={number}>
          <b class="mono">{text}</b>{' '}
          <span class="dim">
            kept for <span class="mono">{place.tensor_name}</span>, made in {plural(steps, 'step')}
            {problem !== null && `. Not in the last one: ${problem}`}
          </span>{' '}
          <button
            type="button"
            class="small"
            title="The later steps stay as they are"
            onClick={() => {
              void debug.release(number);
            }}
          >
            End
          </button>
        </li>
      ))}
    </ul>
  );
}
