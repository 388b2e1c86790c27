// A button with a menu of controls below it, in the top layer, so that panels do not clip it.
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { Icon, type IconName } from './icons';

export function Menu(props: {
  label: string;
  icon?: IconName; // instead of the label
  cut?: true; // the label is cut where there is no room
  title?: string;
  children: ComponentChildren;
}) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const place = (): void => {
    if (!button.current || !box.current) return;
    const { left, bottom, top } = button.current.getBoundingClientRect();
    const { offsetWidth: w, offsetHeight: h } = box.current;
    box.current.style.left = `${Math.max(8, Math.min(left, innerWidth - w - 8))}px`;
    const below = bottom + 4 + h <= innerHeight;
    box.current.style.top = `${below ? bottom + 4 : Math.max(8, top - h - 4)}px`;
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class={props.icon ? 'quiet' : 'small menu-button'}
        popoverTarget={id}
        title={props.title ?? props.label}
        aria-label={props.icon ? props.label : undefined}
      >
        {props.icon ? (
          <Icon name={props.icon} />
        ) : (
          <>
            {props.cut ? <span class="menu-cut">{props.label}</span> : props.label}
            <Icon name="down" />
          </>
        )}
      </button>
      <div
        ref={box}
        id={id}
        popover="auto"
        class="popover menu"
        role="group"
        aria-label={props.label}
        onToggle={place}
      >
        {props.children}
      </div>
    </>
  );
}

// A command in a menu, which it closes.
export function MenuItem({ run, children }: { run: () => void; children: ComponentChildren }) {
  return (
    <button
      type="button"
      class="menu-item"
      onClick={(event) => {
        const box = event.currentTarget.closest('.menu');
        if (box instanceof HTMLElement) box.hidePopover();
        run();
      }}
    >
      {children}
    </button>
  );
}
