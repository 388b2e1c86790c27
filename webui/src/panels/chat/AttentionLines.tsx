// Lines over the text, from the token under the pointer or the selected one to those that it looks at: the
// larger the weight, the stronger the line. LookedAtBar.tsx has the same tokens with their weights as text.
import { effect, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { formatValue } from '../../charts/table';
import { tokenText } from '../../format';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';
import { lineBetween, type Line } from './attention_lines';
import { hasAttention, lookedAtOf, lookOf, mostLookedAt, pointedLine } from './token_attention';
import { placeOf, reveal } from './token_flow';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

interface Drawn extends Line {
  readonly index: number; // of mostLookedAt()
  readonly token: number;
  readonly weight: number;
}

export function AttentionLines({ store, session }: Props) {
  const isOn = usePart(() => lookOf(store) !== null && hasAttention(session));
  return isOn ? <Lines store={store} session={session} /> : null;
}

function Lines({ store, session }: Props) {
  const host = useRef<SVGSVGElement>(null);
  const drawn = useSignal<readonly Drawn[]>([]);
  const of = useSignal<number | null>(null);
  useEffect(() => {
    const content = host.current?.parentElement;
    if (!content) return;
    const resource = lookedAtOf(store, session);
    let frame = 0;
    let revealed: number | null = null; // the token that was scrolled to
    const draw = (): void => {
      const { value: known, key, error } = resource.state.peek();
      // As the tint: those of the token before stay until those of the next one are there.
      const value = key === null || error ? null : known;
      of.value = value?.token ?? null;
      // Once for each token that is reached without the pointer: then the reader may scroll.
      if (value && value.token !== revealed && store.hoverToken.peek() === null) {
        revealed = value.token;
        reveal(value.token);
      }
      drawn.value = value && host.current ? linesOf(host.current, value) : [];
    };
    // When the text is laid out.
    const later = (): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(draw);
    };
    const release = resource.use();
    const stop = effect(() => {
      void resource.state.value;
      void session.feed.version.value;
      later();
    });
    const size = new ResizeObserver(later);
    for (const part of [content, ...content.children]) size.observe(part);
    content.addEventListener('toggle', later, true); // does not bubble
    return () => {
      cancelAnimationFrame(frame);
      content.removeEventListener('toggle', later, true);
      size.disconnect();
      stop();
      release();
    };
  }, [store, session]);
  const pointed = pointedLine(session).value;
  const textOf = (token: number): string => `${tokenText(session.data.tokens[token])} (${token})`;
  return (
    <svg
      ref={host}
      class="attention-lines"
      role="img"
      aria-label={
        of.value === null
          ? 'Attention'
          : `Attention of ${textOf(of.value)}: ${drawn.value.map(({ token, weight }) => `${textOf(token)} ${formatValue('share', weight)}`).join(', ')}`
      }
    >
      {drawn.value.map(({ index, token, weight, path, end: [x, y] }) => (
        <g
          key={index}
          data-token={token}
          data-weight={weight}
          data-pointed={pointed === index}
          opacity={opacityOf(weight, pointed === null ? null : pointed === index)}
          stroke-width={1 + 3 * weight}
        >
          <path d={path} />
          <circle cx={x} cy={y} r={2} />
        </g>
      ))}
    </svg>
  );
}

// One that is pointed at stands out from the others.
const opacityOf = (weight: number, isPointed: boolean | null): number =>
  isPointed === null ? Math.min(1, 0.45 + weight) : isPointed ? 1 : 0.15;

// Beginning with the strongest. A token without text has no line.
function linesOf(
  host: SVGSVGElement,
  { token: from, weights }: { readonly token: number; readonly weights: readonly number[] },
): readonly Drawn[] {
  const origin = host.getBoundingClientRect();
  const boxOf = (token: number) => {
    const place = placeOf(token);
    if (!place) return null;
    const { left, top, width, height } = place;
    return { left: left - origin.left, top: top - origin.top, width, height };
  };
  const start = boxOf(from);
  return mostLookedAt(weights).flatMap((most, index) => {
    const end = boxOf(most.token);
    return start && end ? [{ ...most, index, ...lineBetween(start, end) }] : [];
  });
}
