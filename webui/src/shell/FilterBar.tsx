// The filter of all views, with completion from the session's own names.
import { useSignal } from '@preact/signals';
import { useId, useMemo, useRef } from 'preact/hooks';
import { parseFilter, unknownKey } from '../state/view/filter';
import { complete, type Completion, type FilterNames } from '../state/view/filter_completion';
import type { OpenSession } from '../state/session/open_session';
import { graphOf, opsOf } from '../state/session/per_session';
import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';
import { usePart, useResource } from '../ui/hooks';

const HINT =
  'All words must match. key:value compares one property, -key:value excludes, a,b is either, 2-5 a range: op:mul_mat -layer:0 kind:weight attn_q. Words without a key search names.';

export function FilterBar({ store, session }: { store: Store; session: OpenSession }) {
  const { navigation } = store;
  const filter = usePart(() => navigation.view.value.filter);
  const input = useRef<HTMLInputElement>(null);
  const open = useSignal(false);
  const caret = useSignal(0);
  const at = useSignal(-1);
  const list = useId();
  const names = useNames(store, session, open.value);
  const { from, to, options }: Completion = open.value
    ? complete(filter, Math.min(caret.value, filter.length), names)
    : { from: 0, to: 0, options: [] };
  const set = (text: string, position: number): void => {
    store.setFilter(text);
    caret.value = position;
    at.value = -1;
  };
  const choose = (index: number): void => {
    const option = options[index];
    if (!option) return;
    const rest = filter.slice(to);
    const text = `${filter.slice(0, from)}${option.text}${option.text.endsWith(' ') ? rest.trimStart() : rest}`;
    set(text, from + option.text.length);
    requestAnimationFrame(() => {
      input.current?.setSelectionRange(from + option.text.length, from + option.text.length);
    });
  };
  const isShown = open.value && options.length > 0;
  const words = parseFilter(filter).length;
  return (
    <div class="filter-bar">
      <input
        ref={input}
        id="filter"
        type="text"
        class="mono"
        role="combobox"
        aria-label="Filter"
        aria-expanded={isShown}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={isShown && at.value >= 0 ? `${list}-${at.value}` : undefined}
        placeholder="Filter: layer:2"
        title={HINT}
        autocomplete="off"
        spellcheck={false}
        data-active={words > 0}
        value={filter}
        onFocus={({ relatedTarget: before }) => {
          // The search gives the focus back; its command is done, and the list would cover it.
          const fromSearch = before instanceof Element && before.closest('dialog') !== null;
          open.value = !fromSearch && input.current?.dataset.quiet === undefined;
          delete input.current?.dataset.quiet;
          caret.value = input.current?.selectionStart ?? 0;
        }}
        onClick={() => {
          open.value = true; // again, after Enter or Escape closed it
        }}
        onBlur={() => {
          open.value = false;
        }}
        onInput={(event) => {
          open.value = true;
          set(event.currentTarget.value, event.currentTarget.selectionStart ?? 0);
        }}
        onSelect={(event) => {
          caret.value = event.currentTarget.selectionStart ?? 0;
        }}
        onKeyDown={(event) => {
          const { key } = event;
          if (isShown && key === 'ArrowDown') at.value = (at.value + 1) % options.length;
          else if (isShown && key === 'ArrowUp')
            at.value = (Math.max(0, at.value) - 1 + options.length) % options.length;
          else if (isShown && key === 'Enter' && at.value >= 0) choose(at.value);
          else if (key === 'Enter') open.value = false;
          else if (key === 'Escape' && isShown) open.value = false;
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      {filter !== '' && (
        <IconButton
          icon="close"
          label="Clear the filter"
          onClick={() => {
            navigation.setFilter('', 'push');
            input.current?.focus(); // else the next letters would be shortcuts
          }}
        />
      )}
      {!isShown && (
        <UnknownKeys
          filter={filter}
          change={(text) => {
            navigation.setFilter(text, 'push');
          }}
        />
      )}
      {isShown && (
        <ul id={list} class="filter-options" role="listbox" aria-label="Completions">
          {options.map((option, i) => (
            <li
              key={option.text}
              id={`${list}-${i}`}
              role="option"
              aria-selected={i === at.value}
              // The pointer must not take the focus from the field.
              onPointerDown={(event) => {
                event.preventDefault();
              }}
              onClick={() => {
                choose(i);
              }}
            >
              <span class="mono">{option.text.trim().split(' ').at(-1)}</span>
              <span class="dim">{option.hint}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

// Says which word of the filter has a key that does not exist, and offers the one that was meant.
function UnknownKeys(props: { filter: string; change: (filter: string) => void }) {
  const { filter, change } = props;
  const word = filter.split(/\s+/).find((one) => unknownKey(one) !== null);
  const unknown = word === undefined ? null : unknownKey(word);
  if (word === undefined || !unknown) return null;
  const { key, meant } = unknown;
  return (
    <p class="filter-problem" role="status">
      No key {key}
      {meant === null ? (
        '.'
      ) : (
        <>
          ; do you mean{' '}
          <button
            type="button"
            class="link"
            onClick={() => {
              const at = filter.indexOf(word) + (word.startsWith('-') ? 1 : 0);
              change(filter.slice(0, at) + meant + filter.slice(at + key.length));
            }}
          >
            {meant}:
          </button>
          ?
        </>
      )}
    </p>
  );
}

const EMPTY: FilterNames = {};

// The values of each key that occur in the selected step.
function useNames(store: Store, session: OpenSession, isUsed: boolean): FilterNames {
  const graph = useResource(graphOf(session)).value;
  const ops = useResource(opsOf(session)).value;
  const info = session.info.value;
  const experts = info.is === 'ready' ? (info.value.n_experts ?? 0) : 0;
  const layers = store.layers.value;
  return useMemo(() => {
    if (!isUsed) return EMPTY;
    const tensors = graph?.tensors ?? [];
    const rows = ops?.rows ?? [];
    const distinct = (values: readonly string[]): readonly string[] =>
      [...new Set(values)].filter(Boolean);
    const numbers = (count: number): readonly string[] =>
      Array.from({ length: count }, (_, i) => String(i));
    const weights = tensors.filter(({ tensor_kind }) => tensor_kind === 'weight');
    return {
      op: distinct(rows.map(({ operation_type }) => operation_type)),
      tensor: distinct([...weights, ...tensors].map(({ tensor_name }) => tensor_name)).filter(
        (name) => !name.includes(' '),
      ),
      layer: [...numbers(layers), 'none'],
      component: distinct([...tensors, ...rows].map(({ component }) => component)),
      role: distinct([...tensors, ...rows].map(({ role }) => role)),
      kind: distinct(tensors.map(({ tensor_kind }) => tensor_kind)),
      source: distinct(tensors.map(({ memory_source }) => memory_source)),
      type: distinct(tensors.map(({ tensor_type }) => tensor_type)),
      device: distinct(rows.map(({ device }) => device)),
      verdict: ['clean', 'contended', 'throttled', 'disk'],
      kernel: distinct(rows.map(({ kernel }) => kernel ?? '')),
      expert: numbers(experts),
      access: ['read', 'write'],
      phase: ['prompt', 'generate'],
    };
  }, [isUsed, graph, ops, layers, experts]);
}
