// What the model read and what it answers, token by token. A token under the
// pointer is marked in the heat map too; a click selects its step.
import { effect } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Token } from '../net/types';
import { isActive } from '../state/state';
import type { Store } from '../state/store';
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
        const text = store.data.tokens.map((t) => (t?.generated ? t.text : '')).join('');
        void navigator.clipboard.writeText(text);
      }}
    >
      Copy
    </button>
  );
}

// Painted by hand: an answer has thousands of tokens and grows many times a
// second; only what is new is touched.
function Text({ store, active }: { store: Store; active: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = host.current;
    if (!box) return;
    const stops = [paintTokens(box, store), paintMarks(box, store), listen(box, store)];
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
    />
  );
}

type Stop = () => void;

function paintTokens(box: HTMLElement, store: Store): Stop {
  const version = store.select(({ open }) => open?.version ?? 0);
  const shown: (Token | undefined)[] = [];
  return effect(() => {
    void version.value;
    const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 24;
    store.data.tokens.forEach((token, i) => {
      if (shown[i] === token) return;
      shown[i] = token;
      // Indexes may arrive with holes; each gets its place at once.
      while (box.children.length <= i) box.append(document.createElement('span'));
      const span = box.children[i];
      if (span instanceof HTMLElement && token) fill(span, token);
    });
    if (atEnd) box.scrollTop = box.scrollHeight;
  });
}

function fill(span: HTMLElement, token: Token): void {
  span.textContent = token.text;
  span.className = token.generated ? 'token' : token.reused ? 'token given reused' : 'token given';
  span.dataset.index = String(token.index);
  const origin = token.generated ? 'generated' : token.reused ? 'prompt, from the cache' : 'prompt';
  span.title = `token ${token.index}, id ${token.id}, ${origin}`;
}

// Selected and hovered tokens, by class on the few spans that change.
function paintMarks(box: HTMLElement, store: Store): Stop {
  const selected = store.select(({ open }) => open?.step ?? null);
  const version = store.select(({ open }) => open?.version ?? 0);
  let marked: Element[] = [];
  let hovered: Element | null = null;
  let shownStep: number | null = null;
  const stopSelected = effect(() => {
    void version.value;
    const step = selected.value === null ? undefined : store.data.steps[selected.value];
    const now = step
      ? Array.from({ length: step.n_tokens }, (_, i) => box.children[step.first_token + i])
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
    hovered = index === null ? null : (box.children[index] ?? null);
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
