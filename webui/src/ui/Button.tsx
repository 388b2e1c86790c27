import { Icon, type IconName } from './icons';

// A button with a drawing only; its name is what the pointer and a reader get.
export function IconButton(props: {
  icon: IconName;
  label: string;
  hint?: string; // besides the label, for instance its key
  disabled?: boolean | undefined;
  pressed?: boolean;
  class?: string;
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
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
    </button>
  );
}
