// The tokens of the prompt or the answer. The token under the pointer is also marked in the heat
// map. A click selects the token and its step.
import { effect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { formatCount, plural } from '../../format';
import { streamDiffers, unstreamedText } from '../../state/answer_text';
import type { OpenSession } from '../../state/open_session';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';
import { TokenPainter } from './token_painter';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

export function PromptTokens({ store, session, open = false }: Props & { open?: boolean }) {
  const counts = usePart(() => {
    void session.feed.version.value;
    const prompt = session.data.tokens.filter((token) => token?.generated === false);
    const reused = prompt.filter((token) => token?.reused).length;
    const from = reused > 0 ? `, ${formatCount(reused)} from the cache` : '';
    return prompt.length === 0 ? '' : `${plural(prompt.length, 'token')}${from}`;
  });
  return (
    <details class="prompt-tokens" open={open} hidden={counts === ''}>
      <summary>
        Prompt tokens <span class="dim">{counts}</span>
      </summary>
      <TokenText store={store} session={session} part="prompt" />
    </details>
  );
}

// Updates the DOM directly, without JSX: an answer has thousands of tokens and grows many times a
// second. Only new tokens are changed.
export function TokenText({ store, session, part }: Props & { part: 'prompt' | 'answer' }) {
  const host = useRef<HTMLDivElement>(null);
  const active = session.active.value;
  useEffect(() => {
    const box = host.current;
    const [list, tail] = box?.children ?? [];
    if (!box || !(list instanceof HTMLElement) || !tail) return;
    const painter = new TokenPainter(list, part);
    const stops = [
      effect(() => {
        void session.feed.version.value;
        painter.show(session.data.tokens);
        const { step } = session;
        const shown = step.value === null ? undefined : session.data.steps[step.value];
        painter.select(shown?.first_token ?? 0, shown?.n_tokens ?? 0);
      }),
      effect(() => {
        void session.feed.version.value;
        const run = session.run.value;
        const { tokens } = session.data;
        // If tokens are missing and there is no file, show the run's text instead.
        const incomplete =
          part === 'answer' && session.unrecorded.value && streamDiffers(run, tokens);
        list.hidden = incomplete;
        const rest = part === 'answer' ? unstreamedText(run, tokens) : '';
        const text = incomplete ? (run?.text ?? '') : rest;
        if (tail.textContent !== text) tail.textContent = text;
      }),
      effect(() => {
        painter.hover(store.hoverToken.value);
      }),
      listen(box, store, session),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [store, session, part]);
  return (
    <div ref={host} class="token-text" data-part={part} data-active={part === 'answer' && active}>
      <span />
      <span />
    </div>
  );
}

function listen(box: HTMLElement, store: Store, session: OpenSession): () => void {
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
    const token = tokenAt(event);
    if (token === null || getSelection()?.isCollapsed === false) return;
    store.selectToken(session, token);
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
