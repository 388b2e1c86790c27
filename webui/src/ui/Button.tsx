import { Icon, type IconName } from './icons';

// A button with an icon only. `label` is its accessible name and tooltip.
export function IconButton(props: {
  icon: IconName;
  label: string;
  hint?: string; // shown in the tooltip, for example the shortcut
  disabled?: boolean | undefined;
  pressed?: boolean;
  class?: string;
  tabIndex?: number;
  onClick: (event: MouseEvent) => void;
}) {
  return (
    <button
      type="button"
      class={`quiet ${props.class ?? ''}`}
      aria-label={props.label}
      aria-pressed={props.pressed}
      title={props.hint ? `${props.label} (${props.hint})` : props.label}
      disabled={props.disabled}
      tabIndex={props.tabIndex}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}
