// What the model read and what it answers, token by token. A token under the
// pointer is marked in the heat map too; a click selects its step.
import { effect } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Token } from '../net/types';
import { isActive } from '../state/state';
import type { Store } from '../state/store';
import { streamedText, tailOf } from '../state/answer_text';
import { Empty, Panel } from '../ui/Panel';

export function Answer({ store }: { store: Store }) {
  const id = useMemo(() => store.select(({ open }) => open?.id ?? null), [store]).value;
  const active = useMemo(
    () => store.select(({ open }) => isActive(open?.run?.state)),
    [store],
  ).value;
  return (
    <Panel title="Answer" class="answer" tools={id === null ? null : <Copy store={store} />}>
      {id === null ? (
        <Empty>The answer appears here, token by token.</Empty>
      ) : (
        <Text key={id} store={store} active={active} />
      )}
    </Panel>
  );
}

function Copy({ store }: { store: Store }) {
  return (
    <button
      type="button"
      class="link"
      title="Copies the generated text"
      onClick={() => {
        void navigator.clipboard.writeText(answerText(store));
      }}
    >
      Copy
    </button>
  );
}

// What the server calls the answer, where it still knows; else what the tokens say.
function answerText(store: Store): string {
  const run = store.state.peek().open?.run;
  return run && !isActive(run.state) ? run.text : streamedText(store.data.tokens);
}

// Painted by hand: an answer has thousands of tokens and grows many times a
// second; only what is new is touched.
function Text({ store, active }: { store: Store; active: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = host.current;
    const [list, tail] = box?.children ?? [];
    if (!box || !list || !tail) return;
    const stops = [
      paintTokens(box, list, store),
      paintTail(tail, store),
      paintMarks(list, store),
      listen(box, store),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [store]);
  return (
    <div
      ref={host}
      class="answer-text"
      data-active={active}
      tabIndex={0}
      role="log"
      aria-label="Prompt and answer"
    >
      <span />
      <span />
    </div>
  );
}

type Stop = () => void;

function paintTokens(box: Element, list: Element, store: Store): Stop {
  const version = store.select(({ open }) => open?.version ?? 0);
  const shown: (Token | undefined)[] = [];
  return effect(() => {
    void version.value;
    const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 24;
    store.data.tokens.forEach((token, i) => {
      if (shown[i] === token) return;
      shown[i] = token;
      // Indexes may arrive with holes; each gets its place at once.
      while (list.children.length <= i) list.append(document.createElement('span'));
      const span = list.children[i];
      if (span instanceof HTMLElement && token) fill(span, token);
    });
    if (atEnd) box.scrollTop = box.scrollHeight;
  });
}

function fill(span: HTMLElement, token: Token): void {
  span.textContent = token.text;
  span.classList.add('token');
  span.dataset.index = String(token.index);
  span.dataset.origin = token.generated ? 'generated' : token.reused ? 'reused' : 'prompt';
  span.title = `token ${token.index}, id ${token.id}, ${ORIGINS[span.dataset.origin] ?? ''}`;
}

const ORIGINS: Readonly<Record<string, string>> = {
  generated: 'generated',
  prompt: 'prompt',
  reused: 'prompt, taken from the cache',
};

function paintTail(tail: Element, store: Store): Stop {
  const run = store.select(({ open }) => open?.run ?? null);
  const version = store.select(({ open }) => open?.version ?? 0);
  return effect(() => {
    void version.value;
    tail.textContent = tailOf(run.value, store.data.tokens);
  });
}

// Selected and hovered tokens, by class on the few spans that change.
function paintMarks(list: Element, store: Store): Stop {
  const selected = store.select(({ open }) => open?.step ?? null);
  const version = store.select(({ open }) => open?.version ?? 0);
  let marked: Element[] = [];
  let hovered: Element | null = null;
  let shownStep: number | null = null;
  const stopSelected = effect(() => {
    void version.value;
    const step = selected.value === null ? undefined : store.data.steps[selected.value];
    const now = step
      ? Array.from({ length: step.n_tokens }, (_, i) => list.children[step.first_token + i])
      : [];
    for (const span of marked) span.classList.remove('selected');
    marked = now.filter((span) => span !== undefined);
    for (const span of marked) span.classList.add('selected');
    const running = isActive(store.state.peek().open?.run?.state);
    if (!running && step && step.step !== shownStep)
      marked[0]?.scrollIntoView({ block: 'nearest' });
    shownStep = step?.step ?? null;
  });
  const stopHover = effect(() => {
    hovered?.classList.remove('hovered');
    const index = store.hoverToken.value;
    hovered = index === null ? null : (list.children[index] ?? null);
    hovered?.classList.add('hovered');
  });
  return () => {
    stopSelected();
    stopHover();
  };
}

function listen(box: HTMLElement, store: Store): Stop {
  const tokenAt = (event: Event): number | null => {
    const index = event.target instanceof HTMLElement ? event.target.dataset.index : undefined;
    return index === undefined ? null : Number(index);
  };
  const over = (event: Event): void => {
    store.hoverToken.value = tokenAt(event);
  };
  const leave = (): void => {
    store.hoverToken.value = null;
  };
  const click = (event: Event): void => {
    const index = tokenAt(event);
    if (index === null || getSelection()?.isCollapsed === false) return;
    const step = store.data.steps.find(
      (s) => s && index >= s.first_token && index < s.first_token + s.n_tokens,
    );
    if (step) store.selectStep(step.step);
  };
  box.addEventListener('pointerover', over);
  box.addEventListener('pointerleave', leave);
  box.addEventListener('click', click);
  return () => {
    box.removeEventListener('pointerover', over);
    box.removeEventListener('pointerleave', leave);
    box.removeEventListener('click', click);
  };
}
