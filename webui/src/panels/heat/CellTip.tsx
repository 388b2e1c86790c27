// The tooltip of the cell under the pointer or the keyboard cursor.
import type { ReadonlySignal } from '@preact/signals';
import type { Tip } from './heat_chart';

const WIDTH = 292; // as in panels.css
const HEIGHT = 150;

export function CellTip({ tip }: { tip: ReadonlySignal<Tip | null> }) {
  const shown = tip.value;
  const left = shown && (shown.x + 14 + WIDTH > shown.width ? shown.x - WIDTH - 10 : shown.x + 14);
  const top = shown && Math.max(0, Math.min(shown.y + 14, shown.height - HEIGHT));
  return (
    <div
      class="tip"
      role="status"
      hidden={!shown}
      style={{ transform: `translate(${left ?? 0}px, ${top ?? 0}px)` }}
    >
      {shown && (
        <>
          <div class="tip-head">
            <b class="mono">{shown.text.token}</b>
            <span>{shown.text.head}</span>
          </div>
          <dl>
            {shown.text.lines.map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </>
            ))}
          </dl>
        </>
      )}
    </div>
  );
}
