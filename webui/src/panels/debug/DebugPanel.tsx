// The debugger: breakpoints, and at a stop the values of the op and what if they were others.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { plural } from '../../format';
import { HOLDS_MS, type Breakpoint } from '../../state/request/debug';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { Check } from '../../ui/Check';
import type { PanelProps } from '../panel';
import { StopValues } from './StopValues';
import { WhatIf } from './WhatIf';

export function DebugPanel({ store }: PanelProps) {
  const session = store.open.value;
  const stop = store.debug.stop.value;
  return (
    <div class="debug" tabIndex={0} role="group" aria-label="Debugger details">
      {session && stop && (
        <>
          <StopValues key={session.id} store={store} session={session} stop={stop} />
          <WhatIf store={store} stop={stop} />
        </>
      )}
      <Breakpoints store={store} />
    </div>
  );
}

function Breakpoints({ store }: { store: Store }) {
  const { debug } = store;
  const text = useSignal('');
  const edited = useSignal<string | null>(null); // the breakpoint that is replaced
  const field = useRef<HTMLInputElement>(null);
  const problem = debug.problem.value;
  const own = debug.breakpoints.value;
  const ofRun = debug.state.value?.breakpoints ?? [];
  // Another client may have started the run.
  const others = ofRun.filter((one) => !own.some((mine) => mine.text === one.text));
  const rows: readonly Breakpoint[] = [
    ...own,
    ...others.map((one) => ({ text: one.text, on: true })),
  ];
  const add = async (): Promise<void> => {
    if (!(await debug.add(text.value))) return;
    const before = edited.value;
    if (before !== null && before !== text.value.trim()) await debug.remove(before);
    edited.value = null;
    text.value = '';
  };
  return (
    <section aria-labelledby="debug-breakpoints">
      <h2 id="debug-breakpoints">Breakpoints</h2>
      <ul class="debug-breakpoints" aria-label="Breakpoints">
        {rows.map(({ text: line, on }) => {
          const hits = ofRun.find((one) => one.text === line)?.hits;
          return (
            <li key={line}>
              <label>
                <input
                  type="checkbox"
                  aria-label={`Stop at ${line}`}
                  checked={on}
                  onChange={(event) => {
                    void debug.enable(line, event.currentTarget.checked);
                  }}
                />
                <span class="mono" title={line}>
                  {line}
                </span>
              </label>
              {hits !== undefined && <span class="dim">{plural(hits, 'time')}</span>}
              <IconButton
                icon="pencil"
                label={`Edit ${line}`}
                onClick={() => {
                  text.value = edited.value = line;
                  field.current?.focus();
                }}
              />
              <IconButton
                icon="trash"
                label={`Remove ${line}`}
                onClick={() => {
                  void debug.remove(line);
                }}
              />
            </li>
          );
        })}
      </ul>
      <form
        class="debug-add"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <input
          ref={field}
          type="text"
          class="mono"
          aria-label="New breakpoint"
          aria-describedby="debug-grammar"
          aria-invalid={problem !== null}
          placeholder="ffn_out layer 3 if norm > 100"
          maxLength={1000}
          spellcheck={false}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
        />
        <button type="submit" class="small">
          {edited.value === null ? 'Add' : 'Replace'}
        </button>
      </form>
      <p class="problem" role="alert">
        {problem}
      </p>
      <p id="debug-grammar" class="dim">
        A part of the output’s name, and any of: <code>op MUL_MAT</code> <code>layer 3-5</code>{' '}
        <code>token 12</code> <code>step 1-</code> <code>expert 7</code> <code>if nan</code>{' '}
        <code>if norm &gt; 100</code>, <code>before</code> first. In the graph a right click, in the
        table a click at the left edge of a row, or B sets one.
      </p>
      <Check
        text="Stop before the first op"
        hint="Of the next run"
        on={debug.atStart.value}
        set={(on) => {
          debug.stopAtStart(on);
        }}
      />
      <label
        class="check"
        title="Of the next run. The requests that wait for the model are held up so long"
      >
        A stop lasts
        <select
          value={debug.holdMs.value}
          onChange={(event) => {
            debug.holdFor(Number(event.currentTarget.value));
          }}
        >
          {HOLDS_MS.map((ms) => (
            <option key={ms} value={ms}>
              {plural(ms / 60_000, 'minute')}
            </option>
          ))}
        </select>
      </label>
      <p class="dim">The next run stops there. A run that can be stopped is slower.</p>
    </section>
  );
}
