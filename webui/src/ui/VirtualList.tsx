// A virtual list: renders only the rows in view. All rows have the same height. The list is one
// stop of the Tab key: up and down move between the rows, left and right inside a row. Rows mark
// their controls with `tabIndex={-1}`, and one row its first control with 0.
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
    <div
      ref={box}
      class="virtual"
      aria-label={props.label}
      role="group"
      onKeyDown={(event) => {
        if (moveFocus(event.currentTarget, event.key)) event.preventDefault();
      }}
    >
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

const CONTROLS = 'button:not(:disabled), a[href]';

// Moves the focus by an arrow key; returns whether it did.
function moveFocus(list: HTMLElement, key: string): boolean {
  const focused = document.activeElement;
  const row = focused?.closest('li');
  if (!row || focused instanceof HTMLInputElement) return false;
  const inside = [...row.querySelectorAll<HTMLElement>(CONTROLS)];
  const at = inside.findIndex((one) => one === focused);
  const target =
    key === 'ArrowRight'
      ? inside[at + 1]
      : key === 'ArrowLeft'
        ? inside[at - 1]
        : key === 'ArrowDown'
          ? (row.nextElementSibling?.querySelector<HTMLElement>(CONTROLS) ?? undefined)
          : key === 'ArrowUp'
            ? (row.previousElementSibling?.querySelector<HTMLElement>(CONTROLS) ?? undefined)
            : undefined;
  if (!target || !list.contains(target)) return false;
  target.focus();
  return true;
}
