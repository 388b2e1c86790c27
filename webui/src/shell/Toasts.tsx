import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';

export function Toasts({ store }: { store: Store }) {
  const { toasts } = store;
  return (
    <div class="toasts" role="region" aria-label="Messages" aria-live="polite">
      {toasts.list.value.map(({ id, tone, text, action }) => (
        <div
          key={id}
          class="toast"
          data-tone={tone}
          onPointerEnter={() => {
            toasts.pause(id);
          }}
          onPointerLeave={() => {
            toasts.resume(id);
          }}
          onFocusIn={() => {
            toasts.pause(id);
          }}
          onFocusOut={() => {
            toasts.resume(id);
          }}
        >
          <span>{text}</span>
          {action && (
            <button
              type="button"
              class="link"
              onClick={() => {
                toasts.remove(id);
                action.run();
              }}
            >
              {action.text}
            </button>
          )}
          <IconButton
            icon="close"
            label="Dismiss"
            onClick={() => {
              toasts.remove(id);
            }}
          />
        </div>
      ))}
    </div>
  );
}
