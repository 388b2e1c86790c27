// A virtual list: renders only the rows in view. All rows have the same height.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

const OVERSCAN = 4;

export function VirtualList(props: {
  label: string;
  count: number;
  rowHeight: number; // pixels
  row: (index: number) => ComponentChildren;
  keyOf: (index: number) => string;
  onEndReached: () => void; // called when the last row is in view
}) {
  const { count, rowHeight } = props;
  const box = useRef<HTMLDivElement>(null);
  const window = useSignal({ top: 0, height: 600 });
  useEffect(() => {
    const host = box.current;
    if (!host) return;
    const look = (): void => {
      window.value = { top: host.scrollTop, height: host.clientHeight };
    };
    const size = new ResizeObserver(look);
    size.observe(host);
    host.addEventListener('scroll', look, { passive: true });
    return () => {
      size.disconnect();
      host.removeEventListener('scroll', look);
    };
  }, [window]);
  const { top, height } = window.value;
  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  const atEnd = last >= count && count > 0;
  useEffect(() => {
    if (atEnd) props.onEndReached();
  }, [atEnd, count]);
  return (
    <div ref={box} class="virtual" tabIndex={0} aria-label={props.label} role="group">
      <ul aria-label={props.label} style={{ height: `${count * rowHeight}px` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, i) => (
          <li
            key={props.keyOf(first + i)}
            aria-setsize={count}
            aria-posinset={first + i + 1}
            style={{
              transform: `translateY(${(first + i) * rowHeight}px)`,
              height: `${rowHeight}px`,
            }}
          >
            {props.row(first + i)}
          </li>
        ))}
      </ul>
    </div>
  );
}
