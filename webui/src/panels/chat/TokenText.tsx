// The tokens of the prompt or the answer. The token under the pointer is also marked in the heat
// map. A click selects the token and its step.
import { effect, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { formatCount, formatNs, plural } from '../../format';
import type { Run, Token } from '../../net/types';
import { emptyScale } from '../../plane/scale';
import { streamDiffers, unstreamedText } from '../../state/request/answer_text';
import type { OpenSession } from '../../state/session/open_session';
import { originOf } from '../../state/session/token_origin';
import type { Store } from '../../state/store';
import { Check } from '../../ui/Check';
import { usePart } from '../../ui/hooks';
import { COST_MARKS, costLevels, costScale } from './token_cost';
import { TokenFlow, textToCopy } from './token_flow';
import { LookedAtBar } from './LookedAtBar';
import {
  encodeLook,
  hasAttention,
  LOOK_SHARES,
  lookedAtOf,
  lookLevels,
  lookOf,
} from './token_attention';
import { hasSurprise, SURPRISE_BITS, surpriseLevels } from './token_surprise';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly sequence?: number | undefined; // only its tokens
}

export function PromptTokens({
  store,
  session,
  sequence,
  open = false,
}: Props & { open?: boolean }) {
  const counts = usePart(() => {
    const known = session.sequences.value;
    const own = sequence === undefined && known.size === 1 ? [...known.values()][0] : known.get(sequence ?? 0); // prettier-ignore
    const { prompt, reused } = sequence === undefined ? session.counts.value : (own ?? { prompt: 0, reused: 0 }); // prettier-ignore
    if (prompt === 0) return '';
    if (reused > 0) return `${plural(prompt, 'token')}, ${formatCount(reused)} reused from the KV cache`; // prettier-ignore
    const before = own && own.first !== Infinity ? own.first : 0;
    return before > 0
      ? `${plural(prompt, 'token')}, after ${formatCount(before)} that were in the KV cache already and are not recorded`
      : plural(prompt, 'token');
  });
  return (
    <details class="prompt-tokens" open={open} hidden={counts === ''}>
      <summary>
        Prompt tokens <span class="dim">{counts}</span>
      </summary>
      <TokenText store={store} session={session} part="prompt" sequence={sequence} />
    </details>
  );
}

// Updates the DOM directly, without JSX: an answer has thousands of tokens and grows many times a
// second. Only new text is added.
export function TokenText({
  store,
  session,
  part,
  sequence,
}: Props & { part: 'prompt' | 'answer' }) {
  const host = useRef<HTMLDivElement>(null);
  const active = useWriting(session, sequence);
  useEffect(() => {
    const box = host.current;
    if (!box) return;
    const flow = new TokenFlow(box, part, sequence ?? null);
    let revealed: number | null = null; // the selected token that was scrolled to
    const stops = [
      effect(() => {
        void session.feed.version.value;
        const { data } = session;
        const { tail, instead } =
          part === 'answer' && sequence === undefined
            ? restOf(session.run.value, session)
            : { tail: '', instead: null };
        flow.update(data, tail, instead);
        const { step } = session;
        const shown = step.value === null ? undefined : data.steps[step.value];
        flow.select(shown?.token_id ?? 0, shown?.token_count ?? 0);
      }),
      // Once for each selection: then the reader may scroll.
      effect(() => {
        void session.feed.version.value;
        const { selection } = store.navigation.view.value;
        const token = selection?.kind === 'token' ? selection.token : null;
        if (token === revealed) return;
        if (token === null || flow.reveal(token)) revealed = token;
      }),
      effect(() => {
        flow.hover(store.hoverToken.value);
      }),
      lookedAtOf(store, session).use(),
      effect(() => {
        if (tintOf(store) !== 'attention') return;
        const { value, key, error } = lookedAtOf(store, session).state.value;
        // The weights of the token before stay until those of the next one are there.
        flow.tint(key !== null && value && !error ? lookLevels(value.weights) : null);
      }),
      whileTinted(store, session, (by) => {
        if (by === 'attention') return;
        flow.tint(by === 'time' ? costLevels(session.data) : null);
        if (by !== 'surprise') return;
        void surpriseLevels(session).then((levels) => {
          if (tintOf(store) === by) flow.tint(levels);
        });
      }),
      listen(box, flow, store, session),
    ];
    return () => {
      for (const stop of stops) stop();
      flow.destroy();
    };
  }, [store, session, part, sequence]);
  return (
    <div ref={host} class="token-text" data-part={part} data-active={part === 'answer' && active} />
  );
}

const QUIET_MS = 2000; // as tt attach: a request without a step for so long is over

// Whether the end of the text is where the next token appears. A session that another program records
// may go on growing when an answer has ended.
function useWriting(session: OpenSession, sequence: number | undefined): boolean {
  const quiet = useSignal(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = effect(() => {
      void session.feed.version.value;
      clearTimeout(timer);
      quiet.value = false;
      const last = session.data.steps.at(-1);
      const stepMs = last ? (last.end_ns - last.begin_ns) / 1e6 : 0;
      timer = setTimeout(() => { quiet.value = true; }, Math.max(QUIET_MS, 3 * stepMs)); // prettier-ignore
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [session]);
  const isLast = usePart(() => {
    void session.feed.version.value;
    const { steps, tokens } = session.data;
    const { token_id: first = 0, token_count: count = 0 } = steps.at(-1) ?? {};
    return sequence === undefined || tokens.slice(first, first + count).some((token) => token?.sequence === sequence); // prettier-ignore
  });
  if (!session.active.value) return false;
  return session.run.value !== null || (isLast && !quiet.value);
}

// The text after the tokens, and the text shown instead of them: if tokens are missing and there
// is no file, the run's text.
function restOf(
  run: Run | null,
  session: OpenSession,
): { readonly tail: string; readonly instead: string | null } {
  const { tokens } = session.data;
  const unrecorded = session.unrecorded.value;
  if (unrecorded && streamDiffers(run, tokens)) return { tail: '', instead: run?.text ?? '' };
  return { tail: unstreamedText(run, tokens), instead: null };
}

// Calls `show` when the option of the chat panel changes, and for a growing session, at most once a
// second, while it is on. The surprise is asked for when the session has ended.
function whileTinted(
  store: Store,
  session: OpenSession,
  show: (by: TintBy | null) => void,
): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let tintedMs = 0;
  const tint = (): void => {
    timer = null;
    tintedMs = Date.now();
    const by = tintOf(store);
    show(by === 'surprise' && session.active.peek() ? null : by);
  };
  const stop = effect(() => {
    const by = tintOf(store);
    if (by === 'time') void session.feed.version.value;
    else if (by !== null) void session.active.value;
    const wait = by === 'time' ? tintedMs + TINT_MS - Date.now() : 0;
    if (wait <= 0) tint();
    else timer ??= setTimeout(tint, wait);
  });
  return () => {
    stop();
    if (timer !== null) clearTimeout(timer);
  };
}

const TINT_MS = 1000;

// Options of the chat panel.
const TINTS = {
  time: 'cost',
  surprise: 'surprise',
  attention: encodeLook({ layer: null, head: null }),
} as const;
type TintBy = keyof typeof TINTS;

const tintOf = (store: Store): TintBy | null => {
  const { chat } = store.navigation.view.value.options;
  if (lookOf(store)) return 'attention';
  return chat === TINTS.time ? 'time' : chat === TINTS.surprise ? 'surprise' : null;
};
const isTinted = (store: Store): boolean => tintOf(store) !== null;

// The switch of the tint, and its scale. While it is on, dragging over the text moves through the
// tokens.
export function Tint({ store, session }: Props) {
  const by = usePart(() => tintOf(store));
  const surprise = usePart(() => hasSurprise(session));
  const attention = usePart(() => hasAttention(session));
  const choose = (which: TintBy) => (tinted: boolean) => {
    store.navigation.setOptions('chat', tinted ? TINTS[which] : '', 'replace');
  };
  return (
    <div class="tint">
      <span aria-hidden="true">Tint</span>
      <Check
        class="toggle"
        text="by time"
        name="tint text by time"
        hint="Tints each token by the time of its step, from blue (fast) to red (slow). Dragging over the text then moves through the tokens."
        on={by === 'time'}
        set={choose('time')}
      />
      {surprise && (
        <Check
          class="toggle"
          text="by surprise"
          hint="Tints each token of the answer by how unlikely the model thought it was, from blue (at least 50 %) to red (below 1 %)."
          on={by === 'surprise'}
          set={choose('surprise')}
        />
      )}
      {attention && (
        <Check
          class="toggle"
          text="by attention"
          hint="Tints the tokens that the token under the pointer, or else the selected one, looks at, from blue (little) to red (at least 50 % of its attention), and draws lines to those that it looks at most."
          on={by === 'attention'}
          set={choose('attention')}
        />
      )}
      {by === 'time' && <TimeScale store={store} session={session} />}
      {by === 'surprise' && <SurpriseScale />}
      {by === 'attention' && <AttentionScale />}
      {attention && by === 'attention' && <LookedAtBar store={store} session={session} />}
    </div>
  );
}

function AttentionScale() {
  const [least, most] = [LOOK_SHARES[0], LOOK_SHARES.at(-1) ?? 1].map(
    (share) => `${100 * share} %`,
  );
  return (
    <Scale
      label={`Tint: attention weights from ${least} to ${most} and more`}
      title="Attention weight of the token; the weights of a token have the sum 100 %, or less if the model has attention sinks"
      least={least ?? ''}
      most={`≥ ${most}`}
    />
  );
}

function SurpriseScale() {
  const most = SURPRISE_BITS.at(-1);
  return (
    <Scale
      label={`Tint: surprise from 0 to ${most} bits and more`}
      title="Surprise: the negative logarithm of the probability of the token"
      least="0 bits"
      most={`≥ ${most} bits`}
    />
  );
}

interface ScaleProps {
  readonly label: string;
  readonly title: string;
  readonly least: string;
  readonly most: string;
}

function Scale({ label, title, least, most }: ScaleProps) {
  return (
    <span class="tint-scale" role="img" aria-label={label} title={title}>
      {least}
      {COST_MARKS.map((name) => (
        <i key={name} data-mark={name} />
      ))}
      {most}
    </span>
  );
}

function TimeScale({ store, session }: Props) {
  const scale = useSignal(emptyScale);
  useEffect(
    () =>
      whileTinted(store, session, () => {
        scale.value = costScale(session.data);
      }),
    [store, session],
  );
  const { min, max, clips } = scale.value;
  if (max === 0) return null;
  const [least, most] = [formatNs(min), `${clips ? '≥ ' : ''}${formatNs(max)}`];
  return (
    <Scale
      label={`Tint: time per token from ${least} to ${most}, logarithmic`}
      title="Time per token, logarithmic"
      least={least}
      most={most}
    />
  );
}

function listen(box: HTMLElement, flow: TokenFlow, store: Store, session: OpenSession): () => void {
  let frame = 0;
  const hover = (token: number | null): void => {
    store.hoverToken.value = token;
    const known = token === null ? undefined : session.data.tokens[token];
    box.title = known ? titleOf(known) : '';
  };
  // With the tint, dragging scrubs instead of selecting text.
  const press = (event: PointerEvent): void => {
    if (event.button === 0 && isTinted(store)) event.preventDefault();
  };
  const noSelection = (event: Event): void => {
    if (isTinted(store)) event.preventDefault();
  };
  const over = ({ clientX, clientY, buttons }: PointerEvent): void => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      const token = flow.tokenAt(clientX, clientY);
      hover(token);
      if (token !== null && buttons === 1 && isTinted(store))
        store.selectToken(session, token, null, 'coalesce');
    });
  };
  const leave = (): void => {
    cancelAnimationFrame(frame);
    hover(null);
  };
  const click = ({ clientX, clientY }: MouseEvent): void => {
    if (getSelection()?.isCollapsed === false) return;
    const token = flow.tokenAt(clientX, clientY);
    if (token !== null) store.selectToken(session, token);
  };
  const copy = (event: ClipboardEvent): void => {
    const text = event.defaultPrevented ? null : textToCopy();
    if (text === null) return;
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
  };
  box.addEventListener('pointerdown', press);
  box.addEventListener('selectstart', noSelection);
  box.addEventListener('pointermove', over);
  box.addEventListener('pointerleave', leave);
  box.addEventListener('click', click);
  document.addEventListener('copy', copy);
  return () => {
    cancelAnimationFrame(frame);
    box.removeEventListener('pointerdown', press);
    box.removeEventListener('selectstart', noSelection);
    box.removeEventListener('pointermove', over);
    box.removeEventListener('pointerleave', leave);
    box.removeEventListener('click', click);
    document.removeEventListener('copy', copy);
  };
}

const titleOf = (token: Token): string =>
  `token ${token.index}, id ${token.id}, ${originOf(token)}`;
