// Changes what the op has computed. The run goes on with the changed output.
import { useSignal } from '@preact/signals';
import { plural } from '../../format';
import type { DebugStop } from '../../net/types';
import type { Store } from '../../state/store';

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
  const problem = useSignal<{ readonly stop: number; readonly text: string } | null>(null);
  const isRunning = debug.isRunning.value;
  const changes = debug.state.value?.changes ?? [];
  const error = problem.value?.stop === stop.number ? problem.value.text : null;
  const change = async (): Promise<void> => {
    const text = changeText(verb.value, which.value, part.value, number.value);
    const failed = await debug.change(text);
    problem.value = failed === null ? null : { stop: stop.number, text: failed };
  };
  return (
    <section aria-labelledby="debug-what-if" data-running={isRunning}>
      <h2 id="debug-what-if">What if</h2>
      {stop.before ? (
        <p class="dim">The op has not run: step to the next op, then its output can be changed.</p>
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
            value={which.value}
            onChange={(event) => {
              which.value = event.currentTarget.value as Which;
            }}
          >
            {WHICH.map(({ value, text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
          {which.value !== 'all' && (
            <input
              type="text"
              class="mono"
              aria-label="Which"
              placeholder={WHICH.find(({ value }) => value === which.value)?.hint}
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
        </form>
      )}
      <p class="problem" role="alert">
        {error}
      </p>
      {changes.length > 0 && (
        <ol class="debug-changes" aria-label="Changes so far">
          {changes.map(({ place, text, elements }, i) => (
            <li key={i}>
              <b class="mono">{text}</b>{' '}
              <span class="dim">
                <span class="mono">{place.tensor_name}</span>, step {place.step}, op {place.op} (
                {plural(elements, 'element')})
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
