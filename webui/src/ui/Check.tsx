// A check box with its text.
interface Props {
  readonly text: string;
  readonly name?: string; // for screen readers, if the text says it only beside others; contains the text
  readonly hint?: string;
  readonly on: boolean;
  readonly set: (on: boolean) => void;
  readonly disabled?: boolean; // `hint` says why
  readonly class?: 'check' | 'toggle'; // in a form, or in a toolbar
}

export function Check({
  text,
  name,
  hint,
  on,
  set,
  disabled = false,
  class: look = 'check',
}: Props) {
  return (
    <label class={look} title={hint}>
      <input
        type="checkbox"
        aria-label={name}
        checked={on}
        disabled={disabled}
        onChange={(event) => {
          set(event.currentTarget.checked);
        }}
      />
      <span>{text}</span>
    </label>
  );
}
